import type { IncomingHttpHeaders } from 'node:http';

/** One request as the routes see it: the path is without the host prefix. */
export interface SimRequest {
  readonly method: string;
  readonly host: SimHost;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Set by a fault: a route of trades shows only the trades before this index of the tape. */
  readonly tapeEnd?: number;
}

const SIM_HOSTS = ['gamma', 'clob', 'data', 'manifold', 'limitless', 'kalshi', 'jupiter', 'solana', '_sim'] as const;
export type SimHost = (typeof SIM_HOSTS)[number];

/** Whether the first part of a path names one of the hosts. */
export function isSimHost(text: string | undefined): text is SimHost {
  return (SIM_HOSTS as readonly (string | undefined)[]).includes(text);
}

/** A JSON answer before faults are applied. */
export interface Reply {
  readonly status: number;
  readonly body: string;
  /** Headers beside the type and the length. */
  readonly headers?: Readonly<Record<string, string>>;
}

export function jsonText(text: string, status = 200): Reply {
  return { status, body: text };
}

export function json(value: unknown, status = 200): Reply {
  return { status, body: JSON.stringify(value) };
}

/** The error shape of the CLOB and of the Data API. */
export function plainError(status: number, error: string): Reply {
  return json({ error }, status);
}

/** A whole number of a query: undefined when absent, null when invalid. */
export function wholeNumber(text: string | null): number | undefined | null {
  if (text === null || text === '') return undefined;
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}
