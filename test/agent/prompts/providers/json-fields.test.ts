// Reading JSON of any shape.
import fc from 'fast-check'
import t from 'tap'
import {
  arrayAt,
  boundedText,
  isTrueAt,
  nonBlankStringAt,
  numberAt,
  objectAt,
  parseJsonObject,
  sessionIdAt,
  stringAt,
  valueAt,
} from '../../../../agent/prompts/providers/json-fields.ts'

const line = {
  part: { text: 'hello', blank: ' \n', cost: 0.5, tags: ['a'], isError: true, none: null },
  sessionID: 'ses_01-x.y',
}

t.test('a value at a path has the expected type', async (t) => {
  t.equal(stringAt(line, 'part', 'text'), 'hello')
  t.equal(nonBlankStringAt(line, 'part', 'text'), 'hello')
  t.equal(numberAt(line, 'part', 'cost'), 0.5)
  t.equal(isTrueAt(line, 'part', 'isError'), true)
  t.strictSame(arrayAt(line, 'part', 'tags'), ['a'])
  t.equal(objectAt(line, 'part'), line.part)
  t.equal(sessionIdAt(line, 'sessionID'), 'ses_01-x.y')
  t.equal(valueAt(line, 'part', 'none'), null)
})

t.test('a missing value or another type is empty', async (t) => {
  t.equal(stringAt(line, 'part', 'cost'), null)
  t.equal(stringAt(line, 'part', 'text', 'length'), null)
  t.equal(stringAt(null), null)
  t.equal(nonBlankStringAt(line, 'part', 'blank'), null)
  t.equal(numberAt(line, 'part', 'text'), null)
  t.equal(isTrueAt(line, 'part', 'text'), false)
  t.strictSame(arrayAt(line, 'part'), [])
  t.strictSame(objectAt(line, 'part', 'tags'), {})
  t.strictSame(objectAt(line, 'part', 'none'), {})
})

t.test('inherited properties are not values', async (t) => {
  t.equal(valueAt({}, 'constructor'), undefined)
  t.equal(valueAt(JSON.parse('{"__proto__":1}'), '__proto__'), 1)
})

t.test('a session id can be passed as an argument', async (t) => {
  const read = (id: unknown) => sessionIdAt({ id }, 'id')
  t.equal(read('019ab7d8-2f9e-7c3a-b8b1-5d2f3ac7f1c2'), '019ab7d8-2f9e-7c3a-b8b1-5d2f3ac7f1c2')
  t.equal(read('a'.repeat(256)), 'a'.repeat(256))
  for (const id of ['', '-s', '../x', 'a b', 'a\n', 'a'.repeat(257), 7]) t.equal(read(id), null)
})

t.test('text that is not a JSON object is null', async (t) => {
  t.strictSame(parseJsonObject('{"a":1}'), { a: 1 })
  for (const text of ['', '[]', 'null', '"a"', '{']) t.equal(parseJsonObject(text), null)
})

t.test('bounded text is a prefix of the text without half a character', async (t) => {
  t.equal(boundedText('four', 4), 'four')
  t.equal(boundedText('fives', 4), 'fiv…')
  t.equal(boundedText('ab😀cd', 4), 'ab…')
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 2, max: 20 }), (text, max) => {
      const bounded = boundedText(text, max)
      const isPrefix = text.startsWith(bounded.slice(0, -1))
      return bounded === text || (bounded.length <= max && isPrefix && bounded.isWellFormed())
    }),
  )
})

t.test('no JSON value makes a reader throw', async () => {
  const paths = fc.array(fc.constantFrom('a', 'b', '', '0', 'length', '__proto__'), { maxLength: 3 })
  const values = fc.jsonValue({ maxDepth: 3 })
  fc.assert(
    fc.property(values, paths, (value, path) => {
      for (const read of [stringAt, numberAt, objectAt, arrayAt, isTrueAt, sessionIdAt])
        read({ a: value, b: [value] }, ...path)
    }),
  )
})
