import { afterAll, beforeAll, expect, it } from 'vitest';
import { isPassword } from '../../../src/domain/values/password.ts';
import { findOperator } from '../../../src/store/ops/operators.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { oddswire } from './run-command.ts';

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.drop());

const operators = (input: string, ...argv: string[]) =>
  oddswire(['operators', ...argv], { DATABASE_URL: test.url }, undefined, input);
const hashOf = async (name: string) => (await findOperator(test.db, name))?.passwordHash ?? '';

it('oddswire operators adds, lists, changes and removes operators', async () => {
  expect(await operators('', 'list')).toEqual({ code: 0, stdout: 'No operators.\n', stderr: '' });
  const added = await operators('the-password-of-alice\n', 'add', 'Alice', '--role', 'operator');
  expect(added).toEqual({ code: 0, stdout: 'added alice\n', stderr: '' });
  expect(await isPassword('the-password-of-alice', await hashOf('alice'))).toBe(true);
  expect(await operators('the-password-of-bob', 'add', 'bob', '--json')).toMatchObject({ code: 0 });

  expect(await operators('a-new-password-of-alice\nignored', 'password', 'alice')).toMatchObject({ code: 0 });
  expect(await isPassword('a-new-password-of-alice', await hashOf('alice'))).toBe(true);

  const listed = JSON.parse((await operators('', 'list', '--json')).stdout);
  expect(listed).toMatchObject([
    { name: 'alice', role: 'operator', sessions: 0 },
    { name: 'bob', role: 'viewer', sessions: 0 },
  ]);
  expect(JSON.stringify(listed)).not.toContain('scrypt');
  expect((await operators('', 'list')).stdout).toMatch(/^name +role .*\nalice +operator .*\nbob +viewer /);
  expect(await operators('', 'remove', 'bob')).toEqual({ code: 0, stdout: 'removed bob\n', stderr: '' });
  expect(await findOperator(test.db, 'bob')).toBeNull();
});

it('oddswire operators ends with 1 and the reason', async () => {
  expect((await operators('a-password-of-dave', 'add', 'dave')).code).toBe(0);
  const failures: [input: string, argv: string[], reason: string][] = [
    ['another-password-of-dave', ['add', 'dave'], 'the operator dave exists already'],
    ['some-password-of-eve', ['password', 'eve'], 'no operator has the name eve'],
    ['', ['remove', 'eve'], 'no operator has the name eve'],
    ['too-short', ['add', 'eve'], 'a password has 12 to 1024 characters'],
    ['', ['add', 'eve'], 'a password has 12 to 1024 characters'],
  ];
  for (const [input, argv, reason] of failures) {
    expect(await operators(input, ...argv)).toEqual({ code: 1, stdout: '', stderr: `oddswire operators: ${reason}\n` });
  }
  expect(await isPassword('a-password-of-dave', await hashOf('dave'))).toBe(true);
});
