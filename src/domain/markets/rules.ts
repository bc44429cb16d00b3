import { createHash } from 'node:crypto';
import { diffWordsWithSpace } from 'diff';

/** The rules of a market: null while never read, empty when the venue states none any more. */
interface Rules {
  text: string | null;
  settlementSource: string | null;
}

/** The rules in a stored state of a market. */
export interface RulesState {
  /** When the state was stored, epoch milliseconds. */
  atMs: number;
  /** Null: absent, or never read. */
  text: string | null;
  /** The same; undefined in states of a release that did not keep it. */
  settlementSource: string | null | undefined;
}

/** Rules that were in force from a moment on. */
export interface RulesVersion extends Rules {
  /** From 1, without gaps. */
  version: number;
  hash: string;
  /** When oddswire stored them first, epoch milliseconds. */
  sinceMs: number;
}

function normalized(text: string | null): string {
  return (text ?? '').replace(/\s+/g, ' ').trim();
}

/** A hash that does not depend on white space: of the text and, on a line of its own, the source. */
function rulesHash({ text, settlementSource }: Rules): string {
  const parts = [normalized(text), normalized(settlementSource)];
  return createHash('sha256')
    .update(parts[1] === '' ? (parts[0] ?? '') : parts.join('\n'))
    .digest('hex');
}

/**
 * The versions of the rules of a market, from its states in their order. A change of white space is no version, and neither is the first
 * reading of a text or of a source, because the market had it before. A version has the white space of its last state.
 */
export function rulesVersions(states: readonly RulesState[]): RulesVersion[] {
  const versions: (Rules & { sinceMs: number })[] = [];
  for (const { atMs, ...state } of states) {
    const last = versions.at(-1);
    const rules = {
      text: read(last?.text, state.text),
      settlementSource: read(last?.settlementSource, state.settlementSource),
    };
    if (last === undefined) {
      if (rules.text !== null || rules.settlementSource !== null) versions.push({ ...rules, sinceMs: atMs });
    } else if (differ(last.text, rules.text) || differ(last.settlementSource, rules.settlementSource)) {
      versions.push({ ...rules, sinceMs: atMs });
    } else {
      Object.assign(last, rules);
    }
  }
  return versions.map((rules, index) => ({ ...rules, version: index + 1, hash: rulesHash(rules) }));
}

function read(known: string | null = null, stated: string | null | undefined): string | null {
  if (stated === undefined) return known;
  return stated ?? (known === null ? null : '');
}

function differ(known: string | null, stated: string | null): boolean {
  return known !== null && known !== stated && normalized(known) !== normalized(stated);
}

/** A part of a comparison of two texts. */
interface DiffPart {
  op: 'equal' | 'insert' | 'delete';
  text: string;
}

/** Inserted and deleted words and spaces. A comparison costs their square: 0.1 s at this limit, for texts of 100 kB. */
const MAX_EDITS = 1_000;

/**
 * The difference of two texts in words: the parts without the insertions are `from`, without the deletions `to`. Texts that differ in too
 * many words are one deletion and one insertion.
 */
export function diffTexts(from: string, to: string): DiffPart[] {
  const changes = diffWordsWithSpace(from, to, { maxEditLength: MAX_EDITS });
  if (changes !== undefined) {
    return changes.map(({ added, removed, value }) => ({
      op: added ? 'insert' : removed ? 'delete' : 'equal',
      text: value,
    }));
  }
  const whole: DiffPart[] = [
    { op: 'delete', text: from },
    { op: 'insert', text: to },
  ];
  return whole.filter(({ text }) => text !== '');
}
