import { type Arguments, UsageError } from '../../../../cli/arguments.ts';
import { printable } from '../../../../src/domain/values/text.ts';
import type { CliCommand } from '../command.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import type { KnownId, KnownIds } from './known-ids.ts';
import { type IdKind, isShortId, LETTERS, SIGN } from './short-id.ts';

/** Whether a call contains a short id where its command takes ids. */
export function hasShortIds({ ids = {} }: CliCommand, given: Arguments): boolean {
  const texts = Object.keys(ids.options ?? {}).flatMap((name) => given.texts.get(name)?.split(',') ?? []);
  return [...(ids.words === undefined ? [] : given.words), ...texts].some(isShortId);
}

/**
 * The arguments with the ids of the venues in place of short ids, and with their venue where the command takes one.
 * @throws UsageError for a short id of several or of another kind, CommandError for an unknown one: it is never guessed
 */
export function withWholeIds({ ids = {}, options }: CliCommand, given: Arguments, known: KnownIds): Arguments {
  const venues = new Set<string | undefined>();
  const whole = (text: string, kind: IdKind) => {
    const id = isShortId(text) ? theOne(text, kind, known) : undefined;
    if (kind === 'market') venues.add(id?.venue);
    return id?.id ?? text;
  };
  const { words: kindOfWords } = ids;
  const words = kindOfWords === undefined ? given.words : given.words.map((word) => whole(word, kindOfWords));
  const texts = new Map(given.texts);
  for (const [name, kind] of Object.entries(ids.options ?? {})) {
    const text = texts.get(name);
    if (text !== undefined)
      texts.set(
        name,
        text
          .split(',')
          .map((each) => whole(each, kind))
          .join(','),
      );
  }
  const [venue, ...others] = venues;
  const asked = texts.get('venue');
  const other = asked === undefined ? undefined : [...venues].find((each) => each !== undefined && each !== asked);
  if (other !== undefined) throw new UsageError([`a short id is of ${other}, not of --venue ${asked}`]);
  // Two venues may have a market of the same id.
  if (venue !== undefined && others.length === 0 && 'venue' in options) texts.set('venue', venue);
  return { ...given, words, texts };
}

function theOne(text: string, kind: IdKind, known: KnownIds): KnownId {
  if (text.length < SIGN.length + LETTERS) {
    throw new UsageError([`${text} is too short: a short id has ${SIGN} and at least ${LETTERS} letters`]);
  }
  const candidates = known.find(text);
  const [first, ...others] = candidates;
  if (first === undefined) {
    throw new CommandError(
      `no listing on this machine showed ${text}: list the market again with \`markets\`, or use its whole id`,
      EXIT.notFound,
    );
  }
  const line = (id: Omit<KnownId, 'letters' | 'market'>) =>
    `  ${known.shortIdOf(id.kind, id.venue, id.id)}  ${id.venue} ${id.id}  ${printable(id.name)}`;
  if (others.length > 0) throw new UsageError([`${text} may be one of these:\n${candidates.map(line).join('\n')}`]);
  if (first.kind === kind) return first;
  const { venue, id, title, outcomes } = first.market;
  const near =
    kind === 'market'
      ? [{ kind, venue, id, name: title }]
      : outcomes.map((each) => ({ kind, venue, id: each.id, name: `${title}: ${each.label}` }));
  throw new UsageError([
    `${text} is ${NAMES[first.kind]}, and this takes ${NAMES[kind]}:\n${near.map(line).join('\n')}`,
  ]);
}

const NAMES: Readonly<Record<IdKind, string>> = { market: 'a market', outcome: 'an outcome' };
