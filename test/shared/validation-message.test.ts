// The sentence for every kind of zod issue.
import t from 'tap'
import { z } from 'zod'
import { integerBetween, queryIntegerBetween, queryOffset } from '../../shared/api/common.ts'
import { validationMessage } from '../../shared/validation-message.ts'

function describe(schema: z.ZodType, value: unknown, root?: string): string {
  const { error } = schema.safeParse(value, { reportInput: true })
  if (error === undefined) throw new Error(`${JSON.stringify(value)} is valid`)
  return validationMessage(error.issues, root)
}

const field = (schema: z.ZodType) => z.object({ x: schema })

t.test('names the field and the rule of every kind of issue', async (t) => {
  for (const [schema, value, message] of [
    [z.object({}), undefined, 'body is required'],
    [z.object({}), null, 'body must be a JSON object'],
    [z.object({}), [], 'body must be a JSON object'],
    [field(z.string()), {}, 'x is required'],
    [field(z.string()), { x: null }, 'x must be a string'],
    [field(z.enum(['a', 'b'])), {}, 'x is required'],
    [field(z.enum(['a', 'b'])), { x: 'c' }, 'x must be one of a, b'],
    [field(z.literal(true)), { x: false }, 'x must be true'],
    [field(z.number()), { x: Number.NaN }, 'x must be a number'],
    [field(z.int()), { x: 1.5 }, 'x must be an integer'],
    [field(z.boolean()), { x: 'yes' }, 'x must be true or false'],
    [field(z.array(z.string())), { x: 'a' }, 'x must be an array'],
    [field(z.array(z.string())), { x: ['a', 1] }, 'x[1] must be a string'],
    [field(z.date()), { x: 'today' }, 'x is not valid'],
    [field(z.number().min(3)), { x: 2 }, 'x must be at least 3'],
    [field(z.number().max(3)), { x: 4 }, 'x must be at most 3'],
    [field(z.number().gt(3)), { x: 3 }, 'x must be greater than 3'],
    [field(z.number().lt(3)), { x: 3 }, 'x must be less than 3'],
    [field(z.number().multipleOf(3)), { x: 4 }, 'x must be a multiple of 3'],
    [field(z.string().min(1)), { x: '' }, 'x must not be empty'],
    [field(z.string().min(2)), { x: 'a' }, 'x must have at least 2 characters'],
    [field(z.string().max(1)), { x: 'ab' }, 'x must have at most 1 character'],
    [field(z.string().length(2)), { x: 'a' }, 'x must have exactly 2 characters'],
    [field(z.array(z.string()).max(2)), { x: ['', '', ''] }, 'x must have at most 2 items'],
    [field(z.string().regex(/^a/)), { x: 'b' }, 'x does not have the required form'],
    [field(z.string().regex(/^a/, 'must start with a')), { x: 'b' }, 'x must start with a'],
    [field(z.string().startsWith('a')), { x: 'b' }, 'x must start with a'],
    [field(z.string().endsWith('a')), { x: 'b' }, 'x must end with a'],
    [field(z.string().includes('a')), { x: 'b' }, 'x must contain a'],
    [field(z.uuid()), { x: 'b' }, 'x must be a UUID'],
    [
      field(z.iso.datetime()),
      { x: 'b' },
      'x must be an RFC 3339 timestamp in UTC, such as 2030-01-31T12:00:00Z',
    ],
    [field(z.templateLiteral(['a', z.number()])), { x: 'b' }, 'x does not have the required form'],
    [field(z.string().refine(() => false)), { x: 'b' }, 'x is not valid'],
    [field(z.string().refine(() => false, 'must be known')), { x: 'b' }, 'x must be known'],
    [field(z.string('Not a string!')), { x: 1 }, 'x must be a string'],
    [field(z.union([z.string(), z.number()])), {}, 'x is required'],
    [field(z.union([z.string(), z.number()])), { x: true }, 'x must be a string or a number'],
    [field(z.union([field(z.string()), field(z.number())])), { x: { x: true } }, 'x is not valid'],
    [field(z.union([z.string().max(2), z.number()])), { x: 'abc' }, 'x must have at most 2 characters'],
    [
      field(z.union([z.literal('read'), z.object({ a: z.string() })])),
      { x: { a: 1 } },
      'x.a must be a string',
    ],
    [z.discriminatedUnion('type', [z.object({ type: z.literal('a') })]), { type: 'b' }, 'type must be a'],
    [z.strictObject({}), { foo: 1 }, 'unknown field foo'],
    [field(z.strictObject({})), { x: { foo: 1 } }, 'unknown field x.foo'],
    [
      field(z.record(z.string().regex(/^[A-Z]/, 'must start with a letter'), z.string())),
      { x: { '1A': '' } },
      'x key "1A" must start with a letter',
    ],
    [field(z.record(z.string(), z.string())), { x: { A: 1 } }, 'x.A must be a string'],
    [field(z.record(z.string(), z.string())), { x: { 'a-b': 1 } }, 'x["a-b"] must be a string'],
  ] as const)
    t.equal(describe(schema, value), message)
})

t.test('names both bounds of an integer, whatever is wrong with it', async (t) => {
  for (const value of [4, 8, 5.5, '5', null, Number.NaN, 2 ** 60])
    t.equal(describe(field(integerBetween(5, 7)), { x: value }), 'x must be an integer between 5 and 7')
  t.equal(describe(field(integerBetween(5, 7)), {}), 'x is required')
  for (const value of ['4', '8', '5.5', 'abc', '', 'Infinity'])
    t.equal(describe(field(queryIntegerBetween(5, 7)), { x: value }), 'x must be an integer between 5 and 7')
  for (const value of ['-1', '0.5', 'abc', '1e300'])
    t.equal(describe(field(queryOffset()), { x: value }), 'x must be a non-negative integer')
  t.same(field(queryIntegerBetween(5, 7)).parse({ x: '6' }), { x: 6 })
})

t.test('describes a repeated query parameter', async (t) => {
  t.equal(describe(field(z.string()), { x: ['a', 'b'] }, 'query'), 'x must be given only once')
  t.equal(describe(field(z.string()), { x: ['a', 'b'] }), 'x must be a string')
})

t.test('shortens long keys of the input', async (t) => {
  const message = describe(z.record(z.string(), z.string()), { ['a'.repeat(1000)]: 1 })
  t.equal(message, `["${'a'.repeat(64)}…"] must be a string`)
})
