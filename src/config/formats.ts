import { accessSync, constants, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { ARCHIVE_KIND_NAMES } from '../domain/archive/kinds.ts';
import { VENUE_NAMES, VENUES, type VenueName } from '../domain/markets/venue.ts';
import { asError, OddswireError } from '../domain/values/errors.ts';
import { hostNameOf, parseUrl } from '../domain/values/parse-url.ts';

/* The formats of variables. A reason never contains the value. */

function isReadableFile(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Decimal digits only: `0x50`, `1e3` and blanks are probably typing errors. */
export function wholeNumber(min: number, max: number, hint?: string) {
  const message = hint ?? `a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, message)
    .transform(Number)
    .pipe(z.number().min(min, message).max(max, message));
}

export const port = wholeNumber(0, 65_535);
export const milliseconds = wholeNumber(100, 86_400_000);
export const days = wholeNumber(1, 36_500);
/** Megabytes, as bytes. */
export const megabytes = (min: number, max: number) => wholeNumber(min, max).transform((count) => count * 1_000_000);
/** An id or a key of another service. */
export const printable = z.string().regex(/^[\x21-\x7e]{1,512}$/, 'printable ASCII without spaces');
export const quota = wholeNumber(0, 2_147_483_647);
const isDecodable = (text: string): boolean => {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
};

/** An address whose user, password and path are decoded where they are used. */
export function decodedUrl(protocol: RegExp) {
  return z.url({ protocol }).refine((url) => {
    const parsed = parseUrl(url);
    if (!parsed) return true;
    const { username, password, pathname } = parsed;
    return [username, password, ...pathname.split('/')].every(isDecodable);
  }, 'each percent sign must begin the code of a character, such as %25 for a percent sign');
}

export const databaseUrl = decodedUrl(/^postgres(ql)?$/);
export const feedUrl = z.url({ protocol: /^wss?$/ });
export const withoutSlash = (url: string) => url.replace(/\/+$/, '');
export const httpUrl = z.url({ protocol: /^https?$/ }).transform(withoutSlash);

function list(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** The parser of a list of known names. Its error shows no entry: a secret can be in the wrong variable. */
function namesOf<Name extends string>(what: string, known: readonly Name[]) {
  return (text: string): Name[] => {
    const given = list(text);
    const all = `known: ${known.join(', ')}`;
    if (given.length === 0) throw new Error(`names no ${what}; ${all}`);
    const names = given.map((entry, index) => {
      const name = known.find((each) => each === entry);
      if (name === undefined) throw new Error(`entry ${index + 1} is an unknown ${what}; ${all}`);
      return name;
    });
    return [...new Set(names)];
  };
}

export const venues = parsedBy(namesOf('venue', VENUE_NAMES));
export const archiveKinds = parsedBy(namesOf('kind', ARCHIVE_KIND_NAMES));

/** The processes run in different folders. */
export const absolutePath = z.string().refine(isAbsolute, 'not an absolute path');

/** The address of an object store without a path: the bucket is its first part. */
export const endpointUrl = z
  .url({ protocol: /^https?$/, abort: true, error: 'an address such as https://s3.example.com' })
  .refine(
    (url) => parseUrl(url)?.origin === withoutSlash(url),
    'an address such as https://s3.example.com, without path, user or query',
  )
  .transform(withoutSlash);

/** `s3://bucket/prefix`; the prefix is optional, and ends with a slash here. */
export function parseStoreUrl(text: string): { bucket: string; prefix: string } {
  const [, bucket, path = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(\/[\w./=-]*)?$/.exec(text) ?? [];
  const parts = path.split('/').filter((part) => part !== '');
  if (bucket === undefined) throw new Error('must be an address such as s3://bucket/prefix');
  if (parts.some((part) => /^\.+$/.test(part))) throw new Error('must not have a part of points alone in its prefix');
  return { bucket, prefix: parts.map((part) => `${part}/`).join('') };
}

/** A text with a parser of its own: the problem shown is the parser's error. */
export function parsedBy<T>(parse: (text: string) => T) {
  return z.string().transform((text, context) => {
    try {
      return parse(text);
    } catch (error) {
      context.addIssue({ code: 'custom', message: asError(error).message });
      return z.NEVER;
    }
  });
}

/** `*`, or origins as browsers write them: scheme, host and port, without a path. */
export function parseOrigins(text: string): string[] {
  const origins = [...new Set(list(text))];
  if (origins.includes('*') && origins.length > 1)
    throw new Error('* allows every origin: list no other origin beside it');
  const isOrigin = (origin: string) => /^https?:/.test(origin) && parseUrl(origin)?.origin === origin;
  const wrong = origins.findIndex((origin) => origin !== '*' && !isOrigin(origin));
  if (wrong >= 0) throw new Error(`entry ${wrong + 1} is not an origin such as https://app.example.com`);
  return origins;
}

/** Host names without ports. */
export function parseHostNames(text: string): string[] {
  return list(text).map((entry, index) => {
    const name = hostNameOf(entry);
    if (name === null || /:\d+$/.test(entry.replace(/^\[.*\]/, '')))
      throw new Error(`entry ${index + 1} is not a host name such as ops.example.com`);
    return name;
  });
}

/** As `parsedBy`, for a text that is kept unchanged. */
export function checkedBy(parse: (text: string) => unknown) {
  return (text: string, context: z.RefinementCtx) => {
    try {
      parse(text);
    } catch (error) {
      context.addIssue({ code: 'custom', message: asError(error).message });
    }
  };
}

/** `<venue>/<market id>`. */
export function parsePublicMarket(text: string): { venue: VenueName; marketId: string } {
  const [, venue = '', marketId = ''] = /^([a-z]+)\/([\x21-\x7e]{1,256})$/.exec(text) ?? [];
  const known = VENUE_NAMES.filter((each) => VENUES[each].capabilities.markets);
  const name = known.find((each) => each === venue);
  if (marketId === '') throw new Error('must be a venue and a market id such as polymarket/512345');
  if (name === undefined) throw new Error(`names no venue with markets: ${known.join(', ')}`);
  return { venue: name, marketId };
}

export const opsPassword = z.string().min(8, 'at least 8 characters').optional();
export const readableFile = z.string().refine(isReadableFile, 'not a file that can be read');

const MAX_SCHEDULE_ENTRIES = 50;
/** 30 days: attempts are kept for a shorter time. */
const MAX_SCHEDULE_DELAY_SECONDS = 2_592_000;

/**
 * Parses a comma list of delays in seconds: N delays are N + 1 attempts. Decimals are allowed, but every delay lasts at least
 * one second. @throws OddswireError `invalid_retry_schedule`
 */
export function parseRetrySchedule(text: string): number[] {
  const parts = text.split(',').map((part) => part.trim());
  if (parts.length > MAX_SCHEDULE_ENTRIES) {
    throw invalidSchedule(`has ${parts.length} delays, at most ${MAX_SCHEDULE_ENTRIES} are allowed`);
  }
  // The error gives only the position: a value in the wrong variable may be a secret.
  const bad = parts.flatMap((part, index) =>
    /^\d+(\.\d+)?$/.test(part) && Number(part) <= MAX_SCHEDULE_DELAY_SECONDS ? [] : [`entry ${index + 1}`],
  );
  if (bad.length > 0) {
    throw invalidSchedule(`${bad.join(', ')}: not seconds from 0 to ${MAX_SCHEDULE_DELAY_SECONDS}`);
  }
  return parts.map(Number);
}

const invalidSchedule = (message: string) => new OddswireError('invalid_retry_schedule', message);
