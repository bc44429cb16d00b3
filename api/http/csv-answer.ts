import { z } from 'zod';
import { csvOfList, fieldsOf } from '../../src/domain/wire/csv.ts';
import type { ApiContext } from '../context.ts';

const CSV_TYPE = 'text/csv; charset=utf-8; header=present';
/** Proxies limit all headers of an answer together, some to 4 KiB. */
const MAX_HEADER_LENGTH = 1_024;
export const OMITTED = 'X-Meta-Omitted';
/** Without such a range or a weight, JSON is at least as acceptable as CSV. */
const MAY_PREFER = /text\/(?:csv|\*)|;\s*q/i;
const WEIGHT = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/i;

/** The columns of a list: the fields of its items in the order of the contract. Undefined for other answers. */
export function columnsOf(data: z.ZodType): string[] | undefined {
  return data instanceof z.ZodArray && data.element instanceof z.ZodObject
    ? Object.keys(data.element.shape)
    : undefined;
}

interface Match {
  /** The weight, 0 to 1. */
  q: number;
  /** 3 for the type itself, 2 for all its subtypes, 1 for every type, 0 for no match. */
  specificity: number;
  order: number;
}

/**
 * Whether a request prefers CSV to JSON by its header `Accept`: by the weight, then by the more specific range, then by the order. In
 * every other case, also when it accepts neither, the answer is JSON.
 */
export function prefersCsv(accept: string | undefined): boolean {
  if (accept === undefined || !MAY_PREFER.test(accept)) return false;
  const ranges = accept.split(',').map((range) => range.split(';').map((part) => part.trim().toLowerCase()));
  const csv = matchOf('text/csv', ranges);
  const json = matchOf('application/json', ranges);
  if (csv.q !== json.q) return csv.q > json.q;
  if (csv.q === 0) return false;
  return csv.specificity === json.specificity ? csv.order < json.order : csv.specificity > json.specificity;
}

/** The most specific of these ranges decides. */
function matchOf(type: string, ranges: readonly (readonly string[])[]): Match {
  const spellings = ['', '*/*', `${type.slice(0, type.indexOf('/'))}/*`, type];
  let best: Match = { q: 0, specificity: 0, order: ranges.length };
  for (const [order, [range = '', ...parameters]] of ranges.entries()) {
    const specificity = range === '' ? -1 : spellings.indexOf(range);
    if (specificity <= best.specificity) continue;
    const weight = parameters.find((parameter) => parameter.startsWith('q='));
    const q = weight === undefined ? 1 : Number(WEIGHT.exec(weight)?.[1] ?? 0);
    best = { q, specificity, order };
  }
  return best;
}

/** The ETag of the CSV of an answer with this ETag. */
export function csvEtag(etag: string): string {
  return `${etag.slice(0, -1)}.csv"`;
}

/** Every header with a field of `meta`, for pages of other origins. */
export const CSV_META_HEADERS: readonly string[] = [
  OMITTED,
  ...[
    'cold_reads',
    'feed_gaps',
    'history',
    'interval',
    'kind',
    'missing',
    'next_cursor',
    'outcome_id',
    'resume_cursor',
    'search',
    'settled_to',
    'warnings',
    'window',
  ].map(metaHeader),
];

/** The name of the header with a field of `meta`: `next_cursor` is in `X-Meta-Next-Cursor`. */
export function metaHeader(field: string): string {
  return `X-Meta-${field.replaceAll(/(?:^|_)([a-z])/g, (_whole, first: string) => `-${first.toUpperCase()}`).slice(1)}`;
}

/**
 * Writes a list as CSV. `data` and `meta` are the JSON texts of the answer. The fields of `meta` become headers, and a next page also
 * a `Link`.
 */
export function writeCsv(
  ctx: ApiContext,
  columns: readonly string[],
  { data, meta }: { data: string; meta: string },
): void {
  const omitted: string[] = [];
  for (const [field, json] of fieldsOf(meta)) {
    if (json === 'null') continue;
    const value = headerValue(json);
    if (value.length <= MAX_HEADER_LENGTH) ctx.set(metaHeader(field), value);
    else omitted.push(field);
    if (field === 'next_cursor') ctx.append('Link', `<${nextTarget(ctx, value)}>; rel="next"`);
  }
  if (omitted.length > 0) ctx.set(OMITTED, omitted.join(', '));
  ctx.body = csvOfList(data, columns);
  ctx.set('Content-Type', CSV_TYPE);
}

/** A text as it is; everything else, and a text with characters beyond ASCII, as JSON in ASCII. */
function headerValue(json: string): string {
  const text = json.startsWith('"') ? (JSON.parse(json) as string) : json;
  if (/^[\x20-\x7e]*$/.test(text)) return text;
  return json.replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${hex(unit, 4)}`);
}

function hex(unit: string, digits: number): string {
  return unit.charCodeAt(0).toString(16).toUpperCase().padStart(digits, '0');
}

/** The target of this request with another cursor. Node shows each byte of a path as one character. */
function nextTarget(ctx: ApiContext, cursor: string): string {
  const query = new URLSearchParams(ctx.querystring);
  query.set('cursor', cursor);
  const path = ctx.path.replaceAll(/[^\x21-\x7e]|[<>"]/g, (byte) => `%${hex(byte, 2)}`);
  return `${path}?${query}`;
}
