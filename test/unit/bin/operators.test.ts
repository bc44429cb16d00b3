import { describe, expect, it } from 'vitest';
import { parseOperatorsArguments } from '../../../bin/operators.ts';
import { readNewPassword } from '../../../bin/read-password.ts';
import { problemsIn } from '../../support/problems-in.ts';

const parse = (...argv: string[]) => parseOperatorsArguments(argv);

describe('the arguments of operators', () => {
  it('accept each command', () => {
    expect(parse('add', 'Alice@Example.com')).toEqual({
      verb: 'add',
      json: false,
      name: 'alice@example.com',
      role: 'viewer',
    });
    expect(parse('add', 'a', '--role', 'operator', '--json')).toMatchObject({ role: 'operator', json: true });
    expect(parse('password', 'a')).toEqual({ verb: 'password', json: false, name: 'a' });
    expect(parse('remove', 'a')).toEqual({ verb: 'remove', json: false, name: 'a' });
    expect(parse('list', '--json')).toEqual({ verb: 'list', json: true });
  });

  it.each([
    [[], 'name a command: add, password, remove, list'],
    [['add'], 'add takes a name of 1 to 64 of the characters a-z 0-9 . _ @ -'],
    [['add', '-x'], 'unknown option -x'],
    [['add', 'a b'], 'add takes a name of 1 to 64 of the characters a-z 0-9 . _ @ -'],
    [['add', 'ops'], 'the name ops belongs to a password of the configuration'],
    [['remove', 'Viewer'], 'the name viewer belongs to a password of the configuration'],
    [['add', 'a', '--role', 'admin'], '--role must be one of viewer, operator'],
    [['add', 'a', 'secret'], 'unknown argument secret'],
    [['password', 'a', '--role', 'viewer'], 'unknown option --role'],
    [['list', 'a'], 'unknown argument a'],
  ])('%j: %s', (argv, problem) => {
    expect(problemsIn(() => parse(...argv))).toContain(problem);
  });
});

/** A terminal in which a person types these keys. */
function terminal(...keys: string[]) {
  const modes: boolean[] = [];
  const shown: string[] = [];
  const source = {
    isTTY: true,
    setRawMode: (isRaw: boolean) => void modes.push(isRaw),
    async *[Symbol.asyncIterator]() {
      for (const key of keys) yield Buffer.from(key);
    },
  };
  return { modes, shown, read: () => readNewPassword(source, (text) => void shown.push(text)) };
}

describe('a password in a terminal', () => {
  it('is asked for twice, without an echo', async () => {
    const { read, modes, shown } = terminal('correct horsx', '\u007f', 'e\r', 'correct horse\r');
    expect(await read()).toBe('correct horse');
    expect(modes).toEqual([true, false]);
    expect(shown.join('')).toBe('Password: \nThe same again: \n');
  });

  it('may arrive in pieces of a character', async () => {
    const [first, ...rest] = Buffer.from('é-and-eleven-more\r');
    const source = {
      isTTY: true,
      async *[Symbol.asyncIterator]() {
        for (let i = 0; i < 2; i++) {
          yield Buffer.from([first ?? 0]);
          yield Buffer.from(rest);
        }
      },
    };
    expect(await readNewPassword(source, () => undefined)).toBe('é-and-eleven-more');
  });

  it.each([
    [['one-password-x\r', 'another-password\r'], 'the two passwords differ'],
    [['half', '\u0003'], 'no password was entered'],
    [['half'], 'no password was entered'],
    [['short\r', 'short\r'], 'a password has 12 to 1024 characters'],
    [['with an arrow \u001b[A\r', 'with an arrow \u001b[A\r'], 'a password has no control characters'],
  ])('%j is rejected: %s', async (keys, reason) => {
    const { read, modes } = terminal(...keys);
    await expect(read()).rejects.toThrow(reason);
    expect(modes.at(-1)).toBe(false);
  });
});
