/** One series of a scrape. */
export interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

export interface Family {
  name: string;
  type: string;
  help: string;
  samples: Sample[];
}

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)",?/g;

/** Parses the text format of Prometheus. @throws on an invalid line, or a line outside its family */
export function readExposition(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  let current: Family | undefined;
  for (const line of text.split('\n')) {
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (keyword === 'HELP') {
      if (families.has(name)) throw new Error(`${name} occurs twice`);
      current = { name, help: rest, type: '', samples: [] };
      families.set(name, current);
    } else if (keyword === 'TYPE') {
      if (current?.name !== name || current.type !== '') throw new Error(`a type of ${name} without its help`);
      current.type = rest;
    } else if (line !== '') {
      const [, sample = '', labels = '', value = ''] = LINE.exec(line) ?? [];
      if (!current || baseName(sample, current.type) !== current.name) throw new Error(`not in its family: ${line}`);
      const read = Object.fromEntries([...labels.matchAll(LABEL)].map(([, label = '', text = '']) => [label, text]));
      current.samples.push({
        name: sample,
        labels: read,
        value: value === 'Nan' ? Number.NaN : Number(value.replace('Inf', 'Infinity')),
      });
    }
  }
  return families;
}

function baseName(sample: string, type: string): string {
  return type === 'histogram' || type === 'summary' ? sample.replace(/_(bucket|sum|count)$/, '') : sample;
}

/** The checks of `promtool check metrics` for our own metrics: prom-client and Node choose their own names. */
export function lint({ name, type, help, samples }: Family): string[] {
  const keys = samples.map((sample) => `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`);
  const rules: [boolean, string][] = [
    [/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(name), 'is not snake case'],
    [help.length > 0, 'has no help'],
    [['counter', 'gauge', 'histogram'].includes(type), `has the type ${type}`],
    [(type === 'counter') === name.endsWith('_total'), 'counters, and only they, end in _total'],
    [!/_(ms|milliseconds|minutes|hours|kb|mb)(_|$)/.test(name), 'has no base unit'],
    [!/_(gauge|counter|histogram|count|sum|bucket|info_total)$/.test(name), 'has its type in its name'],
    [type !== 'histogram' || /_seconds$/.test(name), 'is a histogram without a unit'],
    [new Set(keys).size === keys.length, 'repeats a series'],
    [
      samples.every(({ labels }) => Object.keys(labels).every((label) => !['job', 'instance'].includes(label))),
      'uses a reserved label',
    ],
  ];
  return rules.flatMap(([isKept, problem]) => (isKept ? [] : [`${name} ${problem}`]));
}
