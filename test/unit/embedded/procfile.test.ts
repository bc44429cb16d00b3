import { describe, expect, it } from 'vitest';
import { parseProcfile } from '../../../src/embedded/procfile.ts';
import { ProcfileError } from '../../../src/runtime/errors.ts';

describe('parseProcfile', () => {
  it('reads names and commands in order', () => {
    expect(
      parseProcfile('db: node dist/bin/oddswire.js db\n\n# the rest\r\npoller:node  dist/workers/main.js poller\n'),
    ).toEqual([
      { name: 'db', command: ['node', 'dist/bin/oddswire.js', 'db'] },
      { name: 'poller', command: ['node', 'dist/workers/main.js', 'poller'] },
    ]);
  });

  it('keeps colons and quoted words of the command', () => {
    expect(parseProcfile(`a: node x.js --url http://h:1/ "two words" 'it is' ''`)).toEqual([
      { name: 'a', command: ['node', 'x.js', '--url', 'http://h:1/', 'two words', 'it is', ''] },
    ]);
  });

  it.each([
    ['no colon', 'db node x.js', /line 1 is not/],
    ['no command', 'db: node x\napi:   \n', /line 2 is not/],
    ['a name with a space', 'my db: node x', /line 1 is not/],
    ['a name twice', 'a: node x\na: node y', /line 2 repeats a/],
    ['an empty program', 'a: ""', /line 1 names no program/],
    ['nothing', '\n# only a comment\n', /contains no process/],
  ])('rejects %s', (_label, text, message) => {
    expect(() => parseProcfile(text)).toThrow(ProcfileError);
    expect(() => parseProcfile(text)).toThrow(message);
  });
});
