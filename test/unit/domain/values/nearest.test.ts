import { expect, it } from 'vitest';
import { COMMANDS } from '../../../../bin/commands.ts';
import { nearest } from '../../../../src/domain/values/nearest.ts';

it.each([
  ['key', 'keys'],
  ['strat', 'start'],
  ['aduit', 'audit'],
  ['toString', undefined],
])('nearest returns for %s the command %s', (typed, meant) => {
  expect(nearest(typed, Object.keys(COMMANDS))).toBe(meant);
});
