// Each format: what is read, and how each broken file is named.
#include "learners/data/data_set.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <map>

#include "learners/data/decode.hpp"
#include "tests/learners/data/pictures.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::learners::data {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::string text_of(const Encoded& bytes) { return {bytes.begin(), bytes.end()}; }

std::string reason(const Result<std::unique_ptr<DataSet>>& set) {
  return set ? "" : set.error().message;
}

TEST(ImageFolder, EachFolderIsAClassInTheOrderOfNames) {
  TemporaryFolder folder;
  fs::create_directories(folder / "dog" / "deep");
  fs::create_directories(folder / "cat");
  fs::create_directories(folder / "empty");
  const Image picture = test_picture(8, 6, 3);
  write_content(folder / "dog" / "b.png", text_of(png_of(picture)));
  write_content(folder / "dog" / "deep" / "a.JPG", text_of(jpeg_of(picture)));
  write_content(folder / "cat" / "z.png", text_of(png_of(picture)));
  write_content(folder / "cat" / "notes.txt", "no picture");
  const auto set = open_image_folder(folder.path());
  ASSERT_TRUE(set) << reason(set);
  EXPECT_THAT((*set)->classes(), ElementsAre("cat", "dog"));
  ASSERT_EQ((*set)->size(), 3);
  const auto first = (*set)->read(0), second = (*set)->read(1), third = (*set)->read(2);
  EXPECT_EQ(first->label, 0);
  EXPECT_EQ(second->label, 1);
  EXPECT_EQ(third->label, 1);
  EXPECT_THAT(first->name, HasSubstr("cat/z.png"));
  EXPECT_EQ(decode(std::get<Encoded>(first->content), first->name)->image, picture);
  EXPECT_EQ((*set)->read(3).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ((*set)->read(-1).error().code, ErrorCode::kInvalidArgument);
  const std::uint64_t before = (*set)->fingerprint();
  fs::rename(folder / "cat" / "z.png", folder / "cat" / "y.png");
  EXPECT_NE((*open_image_folder(folder.path()))->fingerprint(), before);
  EXPECT_EQ((*set)->read(0).error().code, ErrorCode::kNotFound);
}

TEST(ImageFolder, NothingToReadIsAnError) {
  TemporaryFolder folder;
  EXPECT_THAT(reason(open_image_folder(folder.path())), HasSubstr("each class is one folder"));
  EXPECT_EQ(open_image_folder(folder / "none").error().code, ErrorCode::kNotFound);
}

std::string cifar_record(bool hundred, std::uint8_t label, const Image& image) {
  std::string record;
  if (hundred) record += '\x07';  // coarse
  record += static_cast<char>(label);
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t i = c; i < image.pixels.size(); i += 3)
      record += static_cast<char>(image.pixels[i]);
  return record;
}

TEST(Cifar, BatchesAreJoinedAndPlanesBecomePixels) {
  for (const bool hundred : {false, true}) {
    TemporaryFolder folder;
    const Image a = test_picture(32, 32, 3), b = smooth_picture(32, 32, 3);
    write_content(folder / "1.bin", cifar_record(hundred, 3, a) + cifar_record(hundred, 9, b));
    write_content(folder / "2.bin", cifar_record(hundred, 0, b));
    const auto set = open_cifar({folder / "1.bin", folder / "2.bin"}, hundred);
    ASSERT_TRUE(set) << reason(set);
    EXPECT_EQ((*set)->size(), 3);
    EXPECT_EQ((*set)->classes().size(), hundred ? 100U : 10U);
    EXPECT_THAT((*set)->file_starts(), ElementsAre(0, 2));
    EXPECT_EQ(std::get<Image>((*set)->read(0)->content), a);
    EXPECT_EQ((*set)->read(1)->label, 9);
    EXPECT_EQ(std::get<Image>((*set)->read(2)->content), b);
    EXPECT_THAT((*set)->read(2)->name, HasSubstr("2.bin[0]"));
  }
}

TEST(Cifar, NamesComeFromTheFileBeside) {
  TemporaryFolder folder;
  write_content(folder / "1.bin", cifar_record(false, 10, test_picture(32, 32, 3)));
  const auto wrong_label = open_cifar({folder / "1.bin"}, false);
  ASSERT_TRUE(wrong_label);
  EXPECT_EQ((*wrong_label)->read(0).error().code, ErrorCode::kCorrupt);
  write_content(folder / "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\r\nj\n\n");
  EXPECT_EQ((*open_cifar({folder / "1.bin"}, false))->classes()[8], "i");
  write_content(folder / "batches.meta.txt", "a\nb\n");
  EXPECT_THAT(reason(open_cifar({folder / "1.bin"}, false)), HasSubstr("has 2 names"));
}

TEST(Cifar, ATruncatedFileIsNamed) {
  TemporaryFolder folder;
  const std::string whole = cifar_record(false, 1, test_picture(32, 32, 3));
  write_content(folder / "1.bin", whole.substr(0, whole.size() - 1));
  EXPECT_THAT(reason(open_cifar({folder / "1.bin"}, false)), HasSubstr("1.bin has 3072 bytes"));
  EXPECT_EQ(open_cifar({folder / "2.bin"}, false).error().code, ErrorCode::kNotFound);
}

std::string idx_header(std::vector<std::uint32_t> extents) {
  std::string header{'\0', '\0', '\x08', static_cast<char>(extents.size())};
  for (const std::uint32_t extent : extents)
    for (int shift = 24; shift >= 0; shift -= 8) header += static_cast<char>(extent >> shift);
  return header;
}

void write_gzip(const fs::path& path, const std::string& content) {
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
}

struct IdxFiles {
  std::string pictures = idx_header({3, 2, 4}) + std::string("abcdefghijklmnopqrstuvwx");
  std::string labels = idx_header({3}) + std::string("\x02\x00\x01", 3);
};

TEST(Idx, PlainAndGzipHoldTheSame) {
  TemporaryFolder folder;
  const IdxFiles files;
  write_content(folder / "train-images-idx3-ubyte", files.pictures);
  write_content(folder / "train-labels-idx1-ubyte", files.labels);
  write_gzip(folder / "t10k-images-idx3-ubyte.gz", files.pictures);
  write_gzip(folder / "t10k-labels-idx1-ubyte.gz", files.labels);
  for (const Split split : {Split::kTraining, Split::kEvaluation}) {
    const auto set = open_data_set({.kind = "idx", .path = folder.path().string()}, split);
    ASSERT_TRUE(set) << reason(set);
    EXPECT_EQ((*set)->size(), 3);
    EXPECT_EQ((*set)->channels(), 1);
    EXPECT_THAT((*set)->classes(), ElementsAre("0", "1", "2"));
    const auto record = (*set)->read(1);
    const Image& image = std::get<Image>(record->content);
    EXPECT_EQ(image.width, 4);
    EXPECT_EQ(image.height, 2);
    EXPECT_EQ(std::string(image.pixels.begin(), image.pixels.end()), "ijklmnop");
    EXPECT_EQ(record->label, 0);
  }
}

TEST(Idx, WhatDoesNotFitIsNamed) {
  TemporaryFolder folder;
  const fs::path pictures = folder / "p", labels = folder / "l";
  const auto refused = [&](const std::string& p, const std::string& l,
                           std::vector<std::string> classes = {}) {
    write_content(pictures, p);
    write_content(labels, l);
    return reason(open_idx(pictures, labels, std::move(classes)));
  };
  const IdxFiles good;
  EXPECT_EQ(refused(good.pictures, good.labels), "");
  EXPECT_THAT(refused(good.pictures + "x", good.labels), HasSubstr("should hold 24 bytes"));
  EXPECT_THAT(refused(good.pictures, good.labels.substr(0, 9)), HasSubstr("should hold 3 bytes"));
  EXPECT_THAT(refused(good.labels, good.labels), HasSubstr("3 dimensions"));
  EXPECT_THAT(refused(good.pictures, idx_header({2}) + std::string(2, '\0')),
              HasSubstr("3 pictures"));
  EXPECT_THAT(refused(good.pictures, good.labels, {"only", "two"}), HasSubstr("2 classes"));
  EXPECT_THAT(refused(idx_header({1U << 31, 1U << 31, 4}), good.labels), HasSubstr("too large"));
  EXPECT_THAT(refused(idx_header({1, 1, 3000000000U}), good.labels), HasSubstr("too large"));
  for (std::size_t size = 0; size < good.pictures.size(); ++size)
    ASSERT_NE(refused(good.pictures.substr(0, size), good.labels), "") << size;
  write_gzip(folder / "z", good.pictures);
  const std::string packed = content_of(folder / "z");
  EXPECT_NE(refused(packed.substr(0, packed.size() - 9), good.labels), "");
  EXPECT_EQ(open_idx(folder / "none", labels, {}).error().code, ErrorCode::kNotFound);
}

using Members = std::vector<std::pair<std::string, std::string>>;

void write_tar(const fs::path& path, const Members& members) {
  archive* tar = archive_write_new();
  archive_write_set_format_pax_restricted(tar);
  archive_write_open_filename(tar, path.c_str());
  for (const auto& [name, content] : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<std::int64_t>(content.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(tar, entry);
    archive_write_data(tar, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(tar);
  archive_write_free(tar);
}

TEST(Tar, MembersOfOneNameAreOneSample) {
  TemporaryFolder folder;
  const std::string a = text_of(png_of(test_picture(9, 7, 3))),
                    b = text_of(jpeg_of(smooth_picture(20, 20, 3)));
  // A name that needs an extended header of its own.
  const std::string deep = std::string(150, 'd') + "/" + std::string(120, 'e');
  write_tar(folder / "s-000.tar", {{"x/1.png", a},
                                   {"x/1.cls", "2\n"},
                                   {"x/1.json", "{}"},
                                   {deep + ".cls", "0"},
                                   {deep + ".jpeg", b}});
  write_tar(folder / "s-001.tar", {{"x/1.cls", "1"}, {"x/1.PNG", a}});
  const auto set = open_data_set({.kind = "tar", .path = folder.path().string()}, Split::kTraining);
  ASSERT_TRUE(set) << reason(set);
  ASSERT_EQ((*set)->size(), 3);
  EXPECT_THAT((*set)->file_starts(), ElementsAre(0, 2));
  EXPECT_THAT((*set)->classes(), ElementsAre("0", "1", "2"));
  const std::vector<std::pair<std::string, std::int64_t>> expected{{a, 2}, {b, 0}, {a, 1}};
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto record = (*set)->read(i);
    ASSERT_TRUE(record) << record.error().message;
    EXPECT_EQ(text_of(std::get<Encoded>(record->content)), expected[i].first) << i;
    EXPECT_EQ(record->label, expected[i].second);
  }
}

TEST(Tar, LabelsMayBeNames) {
  TemporaryFolder folder;
  const std::string a = text_of(png_of(test_picture(4, 4, 3)));
  write_content(folder / "classes.txt", "cat\ndog\n");
  write_tar(folder / "s.tar", {{"1.png", a}, {"1.txt", "dog\n"}});
  const auto set = open_tar({folder / "s.tar"});
  ASSERT_TRUE(set) << reason(set);
  EXPECT_EQ((*set)->read(0)->label, 1);
  EXPECT_THAT((*set)->classes(), ElementsAre("cat", "dog"));
}

TEST(Tar, BrokenShardsAreNamed) {
  TemporaryFolder folder;
  const std::string a = text_of(png_of(test_picture(4, 4, 3)));
  const auto refused = [&](const Members& members) {
    write_tar(folder / "s.tar", members);
    return reason(open_tar({folder / "s.tar"}));
  };
  EXPECT_THAT(refused({{"1.png", a}}), HasSubstr("'1' has no .cls"));
  EXPECT_THAT(refused({{"1.cls", "1"}}), HasSubstr("'1' has no picture"));
  EXPECT_THAT(refused({{"1.cls", "wolf"}, {"1.png", a}}), HasSubstr("neither a number nor a name"));
  EXPECT_THAT(refused({{"1.png", a}, {"1.jpg", a}, {"1.cls", "1"}}), HasSubstr("two pictures"));
  EXPECT_THAT(refused({{"readme", "x"}}), HasSubstr("no shard holds a picture"));
  EXPECT_THAT(refused({{"1.cls", "9223372036854775807"}, {"1.png", a}}), HasSubstr("a label of"));
  write_content(folder / "classes.txt", "crane\nwolf\ncrane\n");
  EXPECT_THAT(refused({{"1.txt", "wolf"}, {"1.png", a}}), HasSubstr("'crane' twice"));
  fs::remove(folder / "classes.txt");
  EXPECT_EQ(open_tar({folder / "none.tar"}).error().code, ErrorCode::kNotFound);
  write_content(folder / "junk.tar", std::string(5000, 'x'));
  EXPECT_EQ(open_tar({folder / "junk.tar"}).error().code, ErrorCode::kCorrupt);
  write_tar(folder / "s.tar", {{"1.cls", "0"}, {"1.png", a}});
  const auto set = open_tar({folder / "s.tar"});
  ASSERT_TRUE(set);
  fs::resize_file(folder / "s.tar", 1024);  // while it is open
  EXPECT_THAT((*set)->read(0).error().message, HasSubstr("became shorter"));
}

TEST(Synthetic, ClassesDifferAndTheSeedFixesThePictures) {
  const auto a = make_synthetic(40, 4, 16, 1), b = make_synthetic(40, 4, 16, 1),
             c = make_synthetic(40, 4, 16, 2);
  EXPECT_EQ(std::get<Image>(a->read(7)->content), std::get<Image>(b->read(7)->content));
  EXPECT_NE(std::get<Image>(a->read(7)->content), std::get<Image>(c->read(7)->content));
  EXPECT_EQ(a->read(7)->label, 3);
  // The mean colour tells the class, in the other split too.
  const auto mean = [](const DataSet& set, std::int64_t index) {
    const auto record = set.read(index);
    std::vector<double> means(3);
    const Image& image = std::get<Image>(record->content);
    for (std::size_t i = 0; i < image.pixels.size(); ++i) means[i % 3] += image.pixels[i] / 256.0;
    return means;
  };
  for (std::int64_t i = 0; i < 40; ++i)
    for (std::size_t channel = 0; channel < 3; ++channel)
      EXPECT_NEAR(mean(*a, i)[channel], mean(*c, i % 4)[channel], 8);
}

TEST(OpenDataSet, WrongOptionsAreNamed) {
  EXPECT_THAT(reason(open_data_set({.kind = "idx"}, Split::kTraining)), HasSubstr("data.path"));
  TemporaryFolder folder;
  for (const char* kind : {"idx", "cifar10", "cifar100", "tar", "image_folder"})
    EXPECT_THAT(
        reason(open_data_set({.kind = kind, .path = folder.path().string()}, Split::kTraining)),
        HasSubstr(folder.path().string()))
        << kind;
}

}  // namespace
}  // namespace troupe::learners::data
