/** A `bigint` column. The driver reads it as text; an entity has bigint, like the rows of `sql`. */
export const BIGINT = {
  type: 'bigint',
  transformer: {
    from: (stored: string | null) => (stored === null ? null : BigInt(stored)),
    to: (value: unknown) => value,
  },
} as const;
