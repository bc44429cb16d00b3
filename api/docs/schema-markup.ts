import { html } from 'ghtml';

/** The part of JSON Schema that the document uses. */
export interface JsonSchema {
  $ref?: string;
  type?: string;
  description?: string;
  format?: string;
  pattern?: string;
  enum?: readonly unknown[];
  const?: unknown;
  default?: unknown;
  example?: unknown;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  properties?: Readonly<Record<string, JsonSchema>>;
  additionalProperties?: boolean | JsonSchema;
  required?: readonly string[];
  items?: JsonSchema;
  anyOf?: readonly JsonSchema[];
  oneOf?: readonly JsonSchema[];
}

/** A long pattern explains nothing to a reader. */
const MAX_PATTERN = 40;

/** A text of the document as markup: the parts in backticks are code, and pages of `docs/` are links. */
export function withCode(text: string): string {
  return text
    .split('`')
    .map((part, index) => (index % 2 === 0 ? withLinks(part) : html`<code>${part}</code>`))
    .join('');
}

function withLinks(text: string): string {
  return html`${text}`.replaceAll(/\bdocs\/([\w/-]+)\.md\b/g, '<a href="/docs/read/$1">$&</a>');
}

/** The name of a schema behind a reference, and a link to it. */
function linkTo(ref: string): string {
  const name = ref.slice(ref.lastIndexOf('/') + 1);
  return html`<a href="#schema-${name}">${name}</a>`;
}

/** The type of a value and its limits, as markup. */
export function typeOf(schema: JsonSchema): string {
  if (schema.$ref !== undefined) return linkTo(schema.$ref);
  const forms = schema.anyOf ?? schema.oneOf;
  if (forms !== undefined) return unionOf(forms);
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (schema.enum !== undefined) return oneOf(schema.enum);
  if (schema.type === 'array')
    return `list of ${typeOf(schema.items ?? {})}${limits(schema.minItems, schema.maxItems, 'items')}`;
  const { type = 'any value', format, pattern, minLength, maxLength, minimum, maximum, exclusiveMinimum } = schema;
  return [
    html`${format === undefined ? type : `${type} (${format})`}`,
    ...(exclusiveMinimum === undefined ? [] : [`above ${exclusiveMinimum}`]),
    ...(minimum === undefined && maximum === undefined ? [] : [range(minimum, maximum)]),
    // Nearly every text has at least one character.
    ...(maxLength === undefined && (minLength ?? 1) <= 1
      ? []
      : [`${range((minLength ?? 0) > 1 ? minLength : undefined, maxLength)} characters`]),
    ...(pattern === undefined || pattern.length > MAX_PATTERN ? [] : [html`<code>${pattern}</code>`]),
  ].join(', ');
}

function oneOf(values: readonly unknown[]): string {
  const codes = values.map((value) => html`<code>${String(value)}</code>`);
  return codes.length === 1 ? (codes[0] ?? '') : `one of ${codes.join(', ')}`;
}

/** `anyOf` a value, a comma list and a list of such values is how a parameter takes one or several. */
function unionOf(forms: readonly JsonSchema[]): string {
  const one = forms[0]?.enum;
  const takesSeveral =
    one !== undefined && forms.some(({ items }) => JSON.stringify(items?.enum) === JSON.stringify(one));
  if (takesSeveral) return oneOf(one).replace('one of', 'one or several of');
  const isOfObjects = forms.every(({ properties }) => properties !== undefined);
  return isOfObjects ? `one of ${forms.length} forms` : forms.map(typeOf).join(' or ');
}

function range(least: number | undefined, most: number | undefined): string {
  if (least === undefined) return `at most ${most}`;
  return most === undefined ? `at least ${least}` : `${least} to ${most}`;
}

function limits(least: number | undefined, most: number | undefined, noun: string): string {
  return least === undefined && most === undefined ? '' : `, ${range(least, most)} ${noun}`;
}

/** A line of a list of fields. */
export function fieldRow(
  name: string,
  schema: JsonSchema,
  isRequired: boolean,
  description = schema.description,
): string {
  const fallback = schema.default === undefined ? '' : html`, default <code>${JSON.stringify(schema.default)}</code>`;
  const example = schema.example === undefined ? '' : html`, for example <code>${String(schema.example)}</code>`;
  return html`<dt><code>${name}</code> <span class="type">!${typeOf(schema)}!${fallback}!${example}</span>!${
    isRequired ? ' <span class="required">required</span>' : ''
  }</dt><dd>!${withCode(description ?? '')}</dd>`;
}

/** The fields of a schema as lines, those of inner objects with their path; empty for a schema without fields. */
export function fieldRows(schema: JsonSchema, prefix = ''): string {
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const path = `${prefix}${name}`;
    return fieldRow(path, field, schema.required?.includes(name) ?? false) + innerRows(field, path);
  });
  if (typeof schema.additionalProperties === 'object')
    rows.push(
      fieldRow(`${prefix}{name}`, schema.additionalProperties, false) +
        innerRows(schema.additionalProperties, `${prefix}{name}`),
    );
  return rows.join('') + formRows(schema, prefix);
}

function innerRows(schema: JsonSchema, path: string): string {
  return schema.type === 'array' ? innerRows(schema.items ?? {}, `${path}[]`) : fieldRows(schema, `${path}.`);
}

/** The fields of each form of a union of objects. */
function formRows(schema: JsonSchema, prefix: string): string {
  const forms = (schema.anyOf ?? schema.oneOf ?? []).filter(({ properties }) => properties !== undefined);
  return forms
    .map(
      (form, index) =>
        html`<dt class="form">form ${index + 1} of ${forms.length}</dt><dd>!${withCode(form.description ?? '')}</dd>!${fieldRows(form, prefix)}`,
    )
    .join('');
}

/** The description and the fields of a schema. */
export function schemaBody(schema: JsonSchema): string {
  const rows = fieldRows(schema);
  const intro = schema.description === undefined ? '' : `<p>${withCode(schema.description)}</p>`;
  return rows === '' ? `${intro}<p class="type">${typeOf(schema)}</p>` : `${intro}<dl class="fields">${rows}</dl>`;
}
