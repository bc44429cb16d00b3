import { describe, expect, it } from 'vitest';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { SIGHTING_EVERY_MS } from '../../../src/store/series/books.ts';
import { bookMemoryOf } from '../../../workers/ingest/book-memory.ts';

const T = 1_000_000;
const level = (price: string, size: string) => ({ price: decimal(price), size: decimal(size) });
const book = (outcomeId: string, size = '1') => ({ outcomeId, asOfMs: T, bids: [level('0.4', size)], asks: [] });
const tokenIdOf = new Map([
  ['a', 1n],
  ['b', 2n],
]);
const batchOf = (...records: ReturnType<typeof book>[]) => ({ records, rejected: [], tokenIdOf });
const passed = (memory: ReturnType<typeof bookMemoryOf>, nowMs: number, ...books: ReturnType<typeof book>[]) =>
  memory.news(batchOf(...books), nowMs).map(({ outcomeId }) => outcomeId);

describe('the memory of books', () => {
  it('keeps back an unchanged book until its sighting has an effect again', () => {
    const memory = bookMemoryOf({});
    const batch = batchOf(book('a'), book('b'));
    expect(memory.news(batch, T)).toEqual(batch.records);
    memory.applied(batch, [1n, 2n], T);
    expect(passed(memory, T, book('a'), book('b', '2'))).toEqual(['b']);
    expect(passed(memory, T + SIGHTING_EVERY_MS - 1, book('a'))).toEqual([]);
    expect(passed(memory, T + SIGHTING_EVERY_MS, book('a'))).toEqual(['a']);
  });

  it('knows no book that the database did not apply', () => {
    const memory = bookMemoryOf({});
    memory.applied(batchOf(book('a'), book('b')), [2n], T);
    expect(passed(memory, T, book('a'), book('b'))).toEqual(['a']);
  });

  it('forgets an outcome whose price another source moved', () => {
    const memory = bookMemoryOf({});
    memory.applied(batchOf(book('a'), book('b')), [1n, 2n], T);
    memory.forget([1n]);
    expect(passed(memory, T, book('a'), book('b'))).toEqual(['a']);
  });

  it('passes every book after the clock was set back', () => {
    const memory = bookMemoryOf({});
    memory.applied(batchOf(book('a')), [1n], T);
    expect(passed(memory, T - 1, book('a'))).toEqual(['a']);
  });

  it('passes a book of an outcome that was not requested', () => {
    expect(passed(bookMemoryOf({}), T, book('other'))).toEqual(['other']);
  });
});
