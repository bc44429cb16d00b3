import { describe, expect, it } from 'vitest';
import { inspectProse, judgeProse } from '../../../scripts/prose.mjs';

const LIMITS = { limit: 3, fileLimit: 15, minWords: 60 };

const foundIn = (file: string, ...lines: string[]) => inspectProse(file, lines.join('\n')).found;

/** A file with this number of words and awkward places. */
const file = (words: number, awkward: number) => ({ file: 'a.ts', words, found: Array<string>(awkward).fill('x') });

describe('inspectProse', () => {
  it('counts awkward constructions in comments of every form', () => {
    const lines = ['// nobody waits', 'a(); // is none', '/** What', ' * whoever', ' */', '/* for ever */'];
    expect(foundIn('a.ts', ...lines)).toHaveLength(5);
  });

  it('counts test names in quotes of every form, also behind tables', () => {
    const lines = [
      "it('mend', run);",
      'describe("nobody", run);',
      'test(`who`, run);',
      "it.skipIf(a)('dear', run);",
      "describe.each(LIST)('wedged', run);",
    ];
    expect(foundIn('a.test.ts', ...lines)).toHaveLength(5);
  });

  it('ignores strings, even with the start of a comment, and code', () => {
    const lines = ["const nobody = 'who // nobody';", 'log("what /* who */");', 'log(`for ever // dear`);'];
    expect(foundIn('a.ts', ...lines)).toEqual([]);
  });

  it('ignores code spans in comments', () => {
    expect(foundIn('a.ts', '// The field `what` of `who()` is text.')).toEqual([]);
  });

  it('counts Markdown prose and link texts, without code spans, fenced code and link targets', () => {
    const lines = [
      'Text: who, `nobody`, [whom](what.md).',
      '```sh',
      'echo nobody',
      '```',
      '~~~',
      'who',
      '~~~',
      'For ever.',
    ];
    expect(foundIn('a.md', ...lines)).toHaveLength(3);
  });

  it('ignores "what happens" and "what is next"', () => {
    expect(foundIn('a.md', 'What happens now? What is next?')).toEqual([]);
  });

  it('counts words and returns each place with its context on one line', () => {
    const text = '/**\n * The sender waits\n * for nobody here.\n */';
    expect(inspectProse('a.ts', text)).toEqual({
      file: 'a.ts',
      words: 6,
      found: ['The sender waits for nobody here.'],
    });
  });
});

describe('judgeProse', () => {
  it('accepts the limit of all files, and fails above it', () => {
    expect(judgeProse([file(1_000, 3)], LIMITS)).toMatchObject({ rate: 3, isBad: false });
    expect(judgeProse([file(500, 4), file(500, 0)], LIMITS)).toMatchObject({ rate: 4, isBad: true, bad: [] });
  });

  it('fails for one file above the limit of a file, although all files are below theirs', () => {
    const results = [file(10_000, 0), file(60, 1)];
    expect(judgeProse(results, LIMITS)).toMatchObject({ isBad: true, bad: [results[1]] });
  });

  it('ignores the rate of a file with few words', () => {
    expect(judgeProse([file(10_000, 0), file(59, 5)], LIMITS)).toMatchObject({ isBad: false, bad: [] });
  });

  it('has the rate 0 without words', () => {
    expect(judgeProse([], LIMITS)).toMatchObject({ words: 0, rate: 0, isBad: false });
  });
});
