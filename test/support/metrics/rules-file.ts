import { readFileSync } from 'node:fs';

export interface AlertRule {
  alert: string;
  expr: string;
  for?: string;
  severity: string;
  summary: string;
  description: string;
  runbook: string;
}

/**
 * Parses the alert rules of a file in the one form of ours: `key: value` by line, values in double quotes or plain, folded ones
 * after `>-`. @throws on a line of another form, so that no line is skipped
 */
export function readRules(path: string): AlertRule[] {
  const rules: Record<string, string>[] = [];
  let folded: { key: string; indent: number } | undefined;
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const indent = line.search(/\S/);
    const rule = rules.at(-1);
    if (folded && indent > folded.indent && rule) {
      rule[folded.key] = `${rule[folded.key] ?? ''} ${line.trim()}`.trim();
      continue;
    }
    folded = undefined;
    if (indent === -1 || /^\s*#/.test(line)) continue;
    if (/^(groups:|\s+- name: [a-z-]+|\s+rules:|\s+labels:|\s+annotations:)$/.test(line)) continue;
    const [, dash, key = '', value = ''] = /^\s+(- )?([a-z]+): (.+)$/.exec(line) ?? [];
    if (key === '') throw new Error(`not read: ${line}`);
    if (dash) rules.push({});
    const current = rules.at(-1) ?? {};
    if (current[key] !== undefined) throw new Error(`twice: ${line}`);
    if (value === '>-') folded = { key, indent };
    else current[key] = value.replace(/^"(.*)"$/, '$1');
  }
  return rules as unknown as AlertRule[];
}
