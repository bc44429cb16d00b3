import { json, type Reply } from '../server/reply.ts';

/** The first value of each known parameter, null when it is absent. */
export type Params = Readonly<Record<string, string | null>>;

/** The venue's error shape. */
export function apiError(status: number, message: string): Reply {
  return json({ message }, status);
}

/** The parameters of a query by name, or the refusal of an unknown one. */
export function strict(query: URLSearchParams, known: readonly string[]): Params | Reply {
  const unknown = [...query.keys()].find((name) => !known.includes(name));
  if (unknown !== undefined) return apiError(400, `Unrecognized key(s) in object: '${unknown}'`);
  return Object.fromEntries(known.map((name) => [name, query.get(name)]));
}

export function isReply(value: Params | Reply): value is Reply {
  return typeof (value as Reply).status === 'number';
}
