import { MAX_PLAIN_PART, shownPath, shownUrl } from '../values/parse-url.ts';

/** Of the stored text with all headers of an answer. */
const MAX_HEADERS_BYTES = 4 * 1024;

/** The headers of an answer, except headers that may hold a secret. */
export interface ResponseHeaders {
  /** Names in lower case. A repeated header has one entry per value. */
  headers: readonly (readonly [name: string, value: string])[];
  /** Headers that may hold a secret. */
  removed: number;
  /** Headers behind the limit of MAX_HEADERS_BYTES. */
  omitted: number;
}

/** As an HTTP client gives them: one character per byte. */
export type ReceivedHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Names of cookies, credentials, challenges and signatures. A challenge (`www-authenticate`) may hold a token of its scheme.
 * The permissions of `access-control-*` are words.
 */
const SECRET_NAME =
  /^(?!access-control-).*(?:auth(?!or(?!i))|cookie|token|secret|passw|credential|api-?key|session|csrf|xsrf|signature|jwt|bearer)/;
/** The credentials of RFC 9110 section 11.4 in a header of another name. */
const CREDENTIALS = /\b(?:bearer|basic|digest|negotiate)\s+\S{8}/i;
/** A shorter known text occurs by chance. */
const MIN_SECRET_LENGTH = 8;

/** Space for the frame of the stored text, with two counts. */
const FRAME_BYTES = 64;

/**
 * The headers to store: whole ones, in their order, as far as they fit. `secrets` are texts that no stored header may repeat; texts below
 * eight characters are ignored. Accepts every name and value.
 */
export function responseHeaders(received: ReceivedHeaders, secrets: readonly string[]): ResponseHeaders {
  const known = secrets.filter((secret) => secret.length >= MIN_SECRET_LENGTH);
  const headers: [string, string][] = [];
  let [removed, omitted, bytes] = [0, 0, FRAME_BYTES];
  for (const [givenName, values = []] of Object.entries(received)) {
    const name = readable(givenName.toLowerCase());
    for (const given of typeof values === 'string' ? [values] : values) {
      if (isSecret(name, given, known)) {
        removed += 1;
        continue;
      }
      const header: [string, string] = [name, withoutQueries(name, readable(utf8Of(given)))];
      const size = Buffer.byteLength(JSON.stringify(header)) + 1;
      if (bytes + size > MAX_HEADERS_BYTES) {
        omitted += 1;
        continue;
      }
      bytes += size;
      headers.push(header);
    }
  }
  return { headers, removed, omitted };
}

/** Texts of an address that may be secrets: the user, the query, its values, and the segments of the path that pages truncate. */
export function secretsOf({ username, password, pathname, search, searchParams }: URL): string[] {
  const parts = pathname.split('/').filter((part) => part.length > MAX_PLAIN_PART);
  return [username, password, search, ...searchParams.values(), ...parts];
}

/** The value of an own header, its words, such as the token behind `Bearer`, and the decoded pair of `Basic`. */
export function secretsOfHeader(value: string): string[] {
  const words = value.split(/\s+/);
  const pair = /^basic\s+(\S+)$/i.exec(value.trim())?.[1];
  const decoded = pair === undefined ? '' : Buffer.from(pair, 'base64').toString('utf8');
  return [value, ...words, decoded, decoded.slice(decoded.indexOf(':') + 1)];
}

function isSecret(name: string, value: string, known: readonly string[]): boolean {
  if (SECRET_NAME.test(name) || CREDENTIALS.test(value)) return true;
  const text = utf8Of(value);
  return known.some((secret) => value.includes(secret) || text.includes(secret) || name.includes(secret.toLowerCase()));
}

/** UTF-8 where the bytes are, else Latin-1. */
function utf8Of(value: string): string {
  if (!/[\u0080-\u00ff]/.test(value)) return value;
  const text = Buffer.from(value, 'latin1').toString('utf8');
  return text.includes('\ufffd') ? value : text;
}

/** Control characters and halves of characters are replaced, so that each page and log can show the text. */
function readable(text: string): string {
  return text.toWellFormed().replace(/(?!\t)\p{Cc}/gu, '\ufffd');
}

/** Addresses without their queries, which may hold a token. `location` may have an address without a host. */
function withoutQueries(name: string, value: string): string {
  if (/^(content-)?location$/.test(name) && !/^https?:/i.test(value)) {
    const [path = '', ...rest] = value.split(/[?#]/);
    return `${shownPath(path)}${rest.length === 0 ? '' : '?…'}`;
  }
  return value.replace(/\bhttps?:\/\/[^\s"'<>,;]+/gi, shownUrl).replace(/\?[\w%][^\s"'<>,;]*/g, '?…');
}

/** The text of the column. Its JSON escapes what Postgres rejects. */
export function storedHeaders(headers: ResponseHeaders): string {
  return JSON.stringify(headers);
}

/** Of a text of `storedHeaders`. */
export function headersOfStored(text: string): ResponseHeaders {
  return JSON.parse(text) as ResponseHeaders;
}

/** The stored part of a receiver's response body. An excerpt of this size may end inside a character. */
export const EXCERPT_BYTES = 4 * 1024;
