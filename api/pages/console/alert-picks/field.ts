import type { FormView } from '../../kit/form-view.ts';
import { hidden } from '../../kit/forms.ts';
import { type Html, html } from '../../kit/html.ts';

/** The form of a new alert. It answers a POST with the firings that the alert would have had. */
export const TRIAL_PATH = '/alerts/new';

/*
 * The subjects of an alert are chosen by words: an outcome, the outcome that an order sells, and the market or event of a scope. The words
 * are in `find.<pick>`. A script chooses from suggestions. Without it, the button `search` shows the matches on the same page.
 */

export const OUTCOME_PICKS = ['tokenMint', 'sellTokenMint'] as const;
export type OutcomePick = (typeof OUTCOME_PICKS)[number];
export type Pick = OutcomePick | 'scope';
const LABELS: Readonly<Record<Pick, string>> = {
  tokenMint: 'Outcome',
  sellTokenMint: 'Outcome to sell',
  scope: 'Market or event',
};
export const SCOPE_IDS = ['scope.market_id', 'scope.event_id'] as const;

/** Something to choose: the fields of the form that it sets, and its words. */
export interface Match {
  fields: Readonly<Record<string, string>>;
  words: Html;
}

/** The chosen subjects, and the matches of words. */
export type Picks = Readonly<Partial<Record<Pick, { chosen?: Html; matches?: readonly Match[] }>>>;

/** The fields of the form that hold the id of a subject. */
export const idsOf = (pick: Pick): readonly string[] => (pick === 'scope' ? SCOPE_IDS : [pick]);

/** The field that chooses a subject. */
export function pickField(view: FormView, pick: Pick, picks: Picks, hint: string): Html {
  const { chosen, matches } = picks[pick] ?? {};
  const label = LABELS[pick];
  if (chosen !== undefined) {
    const ids = Object.fromEntries(idsOf(pick).map((id) => [id, view.value(id)]));
    return html`<div class="pick" data-pick="${pick}">${hidden(ids)}<p class="label">${label}</p>
<div class="chosen" id="field-find.${pick}"><p>${chosen}</p><button type="submit" name="rechoose" value="${pick}" formaction="${TRIAL_PATH}" formnovalidate>Change<span
 class="visually-hidden"> the ${label.toLowerCase()}</span></button></div>${view.problem(`find.${pick}`, label)}</div>`;
  }
  return html`<div class="pick" data-pick="${pick}" data-for="${pick === 'scope' ? 'market' : 'outcome'}">${
    matches === undefined && idsOf(pick).map((id) => html`<input type="hidden" name="${id}" value="">`)
  }
<div class="search-line">${view.field({ label, name: `find.${pick}`, type: 'search', hint })}
<button type="submit" name="search" value="${pick}" formaction="${TRIAL_PATH}" formnovalidate>Search<span class="visually-hidden"> for the ${label.toLowerCase()}</span></button></div>
${matches !== undefined && matchList(pick, matches)}</div>`;
}

function matchList(pick: Pick, matches: readonly Match[]): Html {
  if (matches.length === 0) return html`<p class="note">No open market has these words in its title.</p>`;
  return html`<fieldset class="matches"><legend>${matches.length === 1 ? 'One match' : `${matches.length} matches`}</legend>${matches.map(
    ({ fields, words }, index) =>
      html`<label class="check"><input type="radio" name="pick.${pick}" value="${new URLSearchParams(fields).toString()}"${
        index === 0 && matches.length === 1 && html` checked`
      }><span>${words}</span></label>`,
  )}</fieldset>`;
}

/** The reasons of a rejection with the names of the fields that choose subjects. */
export function atPick(path: string): string {
  if (SCOPE_IDS.some((id) => id === path)) return 'find.scope';
  return OUTCOME_PICKS.some((pick) => pick === path) ? `find.${path}` : path;
}
