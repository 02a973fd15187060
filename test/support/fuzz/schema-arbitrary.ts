// Generates values for a JSON schema of the OpenAPI document, and values that violate it.
import fc, { type Arbitrary } from 'fast-check'

export type Schema = {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  additionalProperties?: Schema | boolean
  propertyNames?: Schema
  minimum?: number
  maximum?: number
  pattern?: string
  format?: string
  maxLength?: number
}
export type Components = { schemas?: Record<string, Schema> }

/** Strings that parsers, paths, databases and spreadsheets treat in a special way. */
const ODD_STRINGS = [
  ...['', ' ', '\0', '\n', '\r\n', '..', '../../etc/passwd', '%00', '%', '%2e%2e%2f', '//', "' or 1=1 --"],
  ...[
    '"',
    '\\',
    '=cmd()',
    '\uD800',
    '\u202e',
    'ﬀ',
    '𝒳',
    '__proto__',
    'constructor',
    'null',
    'NaN',
    '-0',
    '1e999',
  ],
  ...['9'.repeat(40), 'a'.repeat(5000), '{}', '[]', '<script>', 'Infinity', '0x10', 'true'],
]
const NUMBERS = [0, -0, -1, 1.5, 1e21, -1e21, 2 ** 31, 2 ** 53, 2 ** 63, Number.MAX_VALUE, Number.MIN_VALUE]

/** Of any code points. fc.string({ unit: 'binary' }) creates a map of all of them, which takes 1.5 s. */
const anyString = fc
  .array(fc.integer({ min: 0, max: 0x10ffff }), { maxLength: 40 })
  .map((codePoints) => String.fromCodePoint(...codePoints))
export const oddString: Arbitrary<string> = fc.oneof(
  fc.constantFrom(...ODD_STRINGS),
  anyString,
  fc.string({ maxLength: 80 }),
)
const oddNumber = fc.oneof(fc.constantFrom(...NUMBERS), fc.double(), fc.integer())
/** Any JSON value. */
export const anyJson: Arbitrary<unknown> = fc.oneof(
  oddString,
  oddNumber,
  fc.constantFrom(null, true, false),
  fc.jsonValue({ maxDepth: 3 }),
  // Deeply nested.
  fc.constant(JSON.parse(`${'['.repeat(500)}${']'.repeat(500)}`)),
)

/** Mostly valid values, so that requests get past the first check; some parts are wrong. */
export function fromSchema(schema: Schema, components: Components, depth = 0): Arbitrary<unknown> {
  const resolved = resolve(schema, components)
  if (depth > 6) return anyJson
  return fc.oneof(
    { weight: 8, arbitrary: createValid(resolved, components, depth) },
    { weight: 1, arbitrary: anyJson },
  )
}

function resolve(schema: Schema, components: Components): Schema {
  const name = schema.$ref?.split('/').at(-1)
  return name === undefined ? schema : resolve(components.schemas?.[name] ?? {}, components)
}

function createValid(schema: Schema, components: Components, depth: number): Arbitrary<unknown> {
  const { enum: values, const: value, anyOf, oneOf, allOf } = schema
  if (value !== undefined) return fc.constant(value)
  if (values) return fc.constantFrom(...values)
  const choices = anyOf ?? oneOf
  if (choices) return fc.oneof(...choices.map((choice) => fromSchema(choice, components, depth + 1)))
  if (allOf)
    return fromSchema(Object.assign({}, ...allOf.map((part) => resolve(part, components))), components, depth)
  const types = Array.isArray(schema.type) ? schema.type : [schema.type]
  return fc.oneof(...types.map((type) => createOfType(type, schema, components, depth)))
}

function createOfType(
  type: string | undefined,
  schema: Schema,
  components: Components,
  depth: number,
): Arbitrary<unknown> {
  switch (type) {
    case 'string':
      return createString(schema)
    case 'integer':
    case 'number':
      return fc.oneof(
        fc.integer({ min: clamp(schema.minimum ?? -10), max: clamp(schema.maximum ?? 1000) }),
        oddNumber,
      )
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return fc.array(fromSchema(schema.items ?? {}, components, depth + 1), { maxLength: 5 })
    case 'object':
      return createObject(schema, components, depth)
    default:
      return anyJson
  }
}

const clamp = (number: number) => Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, Math.trunc(number)))

function createObject(schema: Schema, components: Components, depth: number): Arbitrary<unknown> {
  const { properties = {}, required = [], additionalProperties } = schema
  const fields = Object.fromEntries(
    Object.entries(properties).map(([name, field]) => [name, fromSchema(field, components, depth + 1)]),
  )
  const known = fc.record(fields, { requiredKeys: required.filter((name) => name in fields) })
  const further =
    typeof additionalProperties === 'object'
      ? fc.dictionary(oddString, fromSchema(additionalProperties, components, depth + 1), { maxKeys: 4 })
      : fc.oneof(
          { weight: 9, arbitrary: fc.constant({}) },
          { weight: 1, arbitrary: fc.dictionary(oddString, anyJson, { maxKeys: 2 }) },
        )
  return fc.tuple(known, further).map(([object, more]) => ({ ...more, ...object }))
}

function createString({ pattern, format, maxLength }: Schema): Arbitrary<string> {
  const valid: Arbitrary<string>[] = []
  if (format === 'uuid') valid.push(fc.uuid())
  if (format === 'date-time') valid.push(fc.date({ noInvalidDate: true }).map((date) => date.toISOString()))
  if (format === 'email') valid.push(fc.emailAddress())
  if (format === 'uri') valid.push(fc.constant('https://audit.invalid/'))
  if (pattern !== undefined) {
    try {
      valid.push(fc.stringMatching(new RegExp(pattern, 'u'), { size: 'small' }))
    } catch {
      // fast-check supports only a part of the syntax of patterns.
    }
  }
  if (maxLength !== undefined) valid.push(fc.string({ maxLength: Math.min(maxLength, 200) }))
  return valid.length === 0 ? oddString : fc.oneof(...valid, ...valid, oddString)
}
