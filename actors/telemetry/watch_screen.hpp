// A full terminal screen through ncurses. At most one exists; owned by the thread that watches.
#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <vector>

#include "actors/telemetry/watch_view.hpp"

namespace troupe::actors::telemetry {

class WatchScreen {
 public:
  // nullptr when the stream is no terminal that ncurses knows (TERM); plain lines then do.
  static std::unique_ptr<WatchScreen> open(std::FILE* stream, bool colour);
  WatchScreen(const WatchScreen&) = delete;
  WatchScreen& operator=(const WatchScreen&) = delete;
  ~WatchScreen();  // gives the terminal back as it was

  std::size_t columns() const;
  std::size_t rows() const;
  bool unicode() const { return unicode_; }
  void draw(const std::vector<StyledLine>& lines);
  // True when q, Escape or Ctrl-C was pressed since the last call. Also notices a new size.
  bool wants_to_quit();

 private:
  WatchScreen(void* screen, bool colour, bool unicode);
  void* screen_;
  bool colour_, unicode_;
};

}  // namespace troupe::actors::telemetry
