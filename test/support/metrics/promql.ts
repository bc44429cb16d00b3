/** A metric in an expression, with the labels of its selector. */
export interface Selector {
  metric: string;
  labels: string[];
}

export interface Expression {
  selectors: Selector[];
  /** Labels of `by`, `on` and similar clauses. */
  groupings: string[];
}

const GROUPING = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;
const TOKEN = /([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{[^}]*\}|\()?/g;
const WORDS = new Set(['and', 'or', 'unless', 'offset', 'bool', 'inf', 'nan']);

/** The names in a PromQL expression, without precedence and types, which `promtool check rules` covers. */
export function readExpression(text: string): Expression {
  const groupings: string[] = [];
  const plain = text
    .replace(/"(?:[^"\\]|\\.)*"/g, '""')
    .replace(GROUPING, (_, names: string) => {
      groupings.push(
        ...names
          .split(',')
          .map((name) => name.trim())
          .filter(Boolean),
      );
      return ' ';
    })
    // Durations, and numbers with an exponent.
    .replace(/\[[^\]]*\]/g, ' ')
    .replace(/\b\d[\w.]*/g, ' ');
  const selectors = [...plain.matchAll(TOKEN)].flatMap(([, metric = '', after = '']): Selector[] => {
    if (after === '(' || WORDS.has(metric)) return [];
    return [{ metric, labels: [...after.matchAll(/([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label) }];
  });
  return { selectors, groupings };
}
