// See watch_screen.hpp. ncurses' macros stay in this file. One thread.
#include "actors/telemetry/watch_screen.hpp"

#include <langinfo.h>

#include <clocale>
#include <cstdlib>
#include <string_view>

#define NCURSES_NOMACROS
#include <curses.h>

namespace troupe::actors::telemetry {
namespace {

constexpr short kWarningPair = 1, kErrorPair = 2;

// UTF-8 when the locale says so or says nothing at all, as in most containers.
bool enter_utf8_locale() {
  const char* locale = std::setlocale(LC_CTYPE, "");
  const std::string_view name = locale ? locale : "C";
  if (name == "C" || name == "POSIX") return std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr;
  return std::string_view(nl_langinfo(CODESET)) == "UTF-8";
}

attr_t attributes(LineStyle style, bool colour) {
  switch (style) {
    case LineStyle::kTitle:
      return A_BOLD;
    case LineStyle::kDim:
      return A_DIM;
    case LineStyle::kWarning:
      return colour ? static_cast<attr_t>(COLOR_PAIR(kWarningPair)) : A_BOLD;
    case LineStyle::kError:
      return colour ? static_cast<attr_t>(COLOR_PAIR(kErrorPair)) | A_BOLD : A_REVERSE;
    case LineStyle::kPlain:
      break;
  }
  return A_NORMAL;
}

}  // namespace

std::unique_ptr<WatchScreen> WatchScreen::open(std::FILE* stream, bool colour) {
  const bool unicode = enter_utf8_locale();
  SCREEN* screen = newterm(nullptr, stream, stdin);
  if (!screen) return nullptr;
  set_term(screen);
  return std::unique_ptr<WatchScreen>(new WatchScreen(screen, colour, unicode));
}

WatchScreen::WatchScreen(void* screen, bool colour, bool unicode)
    : screen_(screen), colour_(colour && has_colors()), unicode_(unicode) {
  raw();  // Ctrl-C arrives as a key, so the terminal is always given back
  noecho();
  nodelay(stdscr, TRUE);
  keypad(stdscr, TRUE);
  set_escdelay(25);
  curs_set(0);
  if (!colour_) return;
  start_color();
  use_default_colors();
  init_pair(kWarningPair, COLOR_YELLOW, -1);
  init_pair(kErrorPair, COLOR_RED, -1);
}

WatchScreen::~WatchScreen() {
  endwin();
  delscreen(static_cast<SCREEN*>(screen_));
}

std::size_t WatchScreen::columns() const { return static_cast<std::size_t>(getmaxx(stdscr)); }
std::size_t WatchScreen::rows() const { return static_cast<std::size_t>(getmaxy(stdscr)); }

void WatchScreen::draw(const std::vector<StyledLine>& lines) {
  werase(stdscr);
  int row = 0;
  for (const StyledLine& line : lines) {
    const attr_t style = attributes(line.style, colour_);
    wattr_on(stdscr, style, nullptr);
    mvwaddnstr(stdscr, row++, 0, line.text.c_str(), static_cast<int>(line.text.size()));
    wattr_off(stdscr, style, nullptr);
  }
  wrefresh(stdscr);
}

bool WatchScreen::wants_to_quit() {
  constexpr int kEscape = 27, kControlC = 3;
  for (int key; (key = wgetch(stdscr)) != ERR;) {
    if (key == 'q' || key == 'Q' || key == kEscape || key == kControlC) return true;
  }
  return false;
}

}  // namespace troupe::actors::telemetry
