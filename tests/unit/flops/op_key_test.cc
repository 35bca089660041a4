// The memory of the C++ observer (python_bindings/flopledger/torch_observer/op_key.h), which knows
// nothing of torch and is tested without it.

#include "op_key.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <set>
#include <string>

namespace {
thread_local std::size_t t_allocations = 0;
}

// Not inlined: the compiler would see memory of one function freed by another.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++t_allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace flopledger::observer {
namespace {

NameEntry Named(const std::string& name) {
  NameEntry entry;
  entry.name = name;
  entry.hash = NameTable::HashOf(name.data(), name.size());
  return entry;
}

NameEntry* Find(NameTable* table, const std::string& name) {
  return table->Find(name.data(), name.size(), NameTable::HashOf(name.data(), name.size()));
}

TEST(NameTableTest, FindsByContentNotByPointer) {
  NameTable table;
  ASSERT_NE(table.Insert(Named("aten::mm")), nullptr);
  std::string buffer = "aten::mm";
  NameEntry* first = Find(&table, buffer);
  ASSERT_NE(first, nullptr);
  buffer = "aten::bm";  // same place, another name
  EXPECT_EQ(Find(&table, buffer), nullptr);
  ASSERT_NE(table.Insert(Named("aten::bm")), nullptr);
  EXPECT_NE(Find(&table, buffer)->index, first->index);
}

TEST(NameTableTest, EqualHashesAreTwoNames) {
  NameTable table;
  NameEntry a = Named("a");
  NameEntry b = Named("b");
  b.hash = a.hash;
  table.Insert(a);
  table.Insert(b);
  EXPECT_EQ(table.Find("a", 1, a.hash)->name, "a");
  EXPECT_EQ(table.Find("b", 1, a.hash)->name, "b");
  EXPECT_EQ(table.Find("c", 1, a.hash), nullptr);
}

TEST(NameTableTest, FullTableEmptiesItselfAndSaysSo) {
  NameTable table;
  std::size_t taken = 0;
  while (table.Insert(Named("name" + std::to_string(taken))) != nullptr) ++taken;
  EXPECT_EQ(taken, NameTable::kCapacity / 2);
  EXPECT_EQ(Find(&table, "name0"), nullptr);
  EXPECT_NE(table.Insert(Named("name0")), nullptr);
}

TEST(NameTableTest, EntriesStayWhereTheyAre) {
  NameTable table;
  NameEntry* first = table.Insert(Named("first"));
  for (int i = 0; i < 1000; ++i) table.Insert(Named("name" + std::to_string(i)));
  EXPECT_EQ(Find(&table, "first"), first);
}

KeyBuffer KeyOf(std::int64_t name, std::initializer_list<std::int64_t> shape,
                std::uint8_t dtype = 1) {
  KeyBuffer key;
  key.Reset(name);
  key.PushArgument(1, dtype, shape.size());
  for (std::int64_t size : shape) key.Push(size);
  return key;
}

TEST(KeyBufferTest, HeadsCarryKindTypeAndCount) {
  KeyBuffer key;
  key.Reset(7);
  key.PushArgument(6, 255, 16);
  ASSERT_EQ(key.words().size(), 2U);
  EXPECT_EQ(KeyBuffer::KindOf(key.words()[1]), 6);
  EXPECT_EQ(KeyBuffer::TypeOf(key.words()[1]), 255);
  EXPECT_EQ(KeyBuffer::CountOf(key.words()[1]), 16U);
}

TEST(KeyBufferTest, EveryPartMakesAnotherHash) {
  std::set<std::uint64_t> hashes = {KeyOf(0, {2, 3}).Hash(),    KeyOf(1, {2, 3}).Hash(),
                                    KeyOf(0, {3, 2}).Hash(),    KeyOf(0, {2, 3, 1}).Hash(),
                                    KeyOf(0, {2, 3}, 4).Hash(), KeyOf(0, {}).Hash(),
                                    KeyOf(0, {6}).Hash(),       KeyOf(0, {-2, 3}).Hash()};
  EXPECT_EQ(hashes.size(), 8U);
}

TEST(SignatureCacheTest, ComparesTheWholeKey) {
  SignatureCache cache;
  const KeyBuffer a = KeyOf(0, {2, 3});
  const KeyBuffer b = KeyOf(0, {3, 2});
  cache.Insert(a.words(), 42, 1);
  cache.Insert(b.words(), 42, 2);  // as if the hashes were equal
  EXPECT_EQ(*cache.Find(a.words(), 42), 1U);
  EXPECT_EQ(*cache.Find(b.words(), 42), 2U);
  EXPECT_EQ(cache.Find(KeyOf(0, {3, 3}).words(), 42), nullptr);
  EXPECT_EQ(cache.Find(KeyOf(0, {2, 3, 1}).words(), 42), nullptr);
}

TEST(SignatureCacheTest, ShapesWithoutEndDoNotGrowIt) {
  SignatureCache cache;
  for (std::int64_t i = 0; i < 5 * static_cast<std::int64_t>(SignatureCache::kMostEntries); ++i) {
    const KeyBuffer key = KeyOf(0, {i, i + 1});
    cache.Insert(key.words(), key.Hash(), static_cast<std::uint32_t>(i));
    ASSERT_NE(cache.Find(key.words(), key.Hash()), nullptr);
  }
  // The latest are there, the oldest went with an earlier filling.
  EXPECT_EQ(cache.Find(KeyOf(0, {0, 1}).words(), KeyOf(0, {0, 1}).Hash()), nullptr);
}

TEST(SignatureCacheTest, SteadyPathAllocatesNothing) {
  NameTable names;
  SignatureCache cache;
  KeyBuffer key;
  const std::string name = "aten::_scaled_dot_product_flash_attention_for_cpu";
  std::uint32_t found = 0;
  const auto call = [&] {
    const std::uint64_t name_hash = NameTable::HashOf(name.data(), name.size());
    NameEntry* entry = names.Find(name.data(), name.size(), name_hash);
    if (entry == nullptr) entry = names.Insert(Named(name));
    key.Reset(entry->index);
    for (int i = 0; i < 10; ++i) {
      key.PushArgument(1, 1, 4);
      for (std::int64_t size : {8, 4, 64, 32}) key.Push(size);
    }
    const std::uint64_t hash = key.Hash();
    const std::uint32_t* known = cache.Find(key.words(), hash);
    if (known == nullptr) {
      cache.Insert(key.words(), hash, 9);
    } else {
      found += *known;
    }
  };
  call();
  const std::size_t before = t_allocations;
  for (int i = 0; i < 1000; ++i) call();
  EXPECT_EQ(t_allocations, before);
  EXPECT_EQ(found, 9000U);
}

}  // namespace
}  // namespace flopledger::observer
