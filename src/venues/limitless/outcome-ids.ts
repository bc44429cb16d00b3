/**
 * A slug: letters, digits and dashes in every market seen. It becomes a part of addresses, so nothing that could change a path is
 * taken.
 */
export const SLUG = /^[A-Za-z0-9][\w.~-]{0,249}$/;
/** An ERC-1155 position id, a uint256 in decimal. */
export const TOKEN_ID = /^\d{1,100}$/;

/** The outcomes of a market: YES first. */
export type OutcomeIds = readonly [yes: string, no: string];

const MADE_UP = /^limitless:([^:]+):(YES|NO)$/;

/**
 * The position tokens of the chain where the market names them. Without tokens the ids are made of the slug, with the venue's name
 * before it: `<id>:YES` alone could be an outcome of Manifold.
 */
export function outcomeIdsOf(slug: string, tokens: { yes: string; no: string } | null | undefined): OutcomeIds {
  return tokens ? [tokens.yes, tokens.no] : [`limitless:${slug}:YES`, `limitless:${slug}:NO`];
}

/** The slug in a made-up outcome id; undefined for a token and for the ids of other venues. */
export function slugOfOutcomeId(outcomeId: string): string | undefined {
  const slug = MADE_UP.exec(outcomeId)?.[1];
  return slug !== undefined && SLUG.test(slug) ? slug : undefined;
}
