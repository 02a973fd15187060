// Range, If-Range and If-None-Match select the complete file, a part of it or no content.
import t from 'tap'
import { type ConditionalHeaders, selectContent } from '../../../agent/files/conditional.ts'

const TAG = '"a-1"'
const COMPLETE = { kind: 'complete' }
const NOT_SATISFIABLE = { kind: 'not satisfiable' }
const NOT_MODIFIED = { kind: 'not modified' }
const part = (start: number, length: number) => ({ kind: 'part', start, length })

t.test('selects a range of a file of 10 bytes', async (t) => {
  for (const [range, expected] of [
    ['bytes=0-0', part(0, 1)],
    ['bytes=0-9', part(0, 10)],
    ['bytes=3-5', part(3, 3)],
    ['bytes=3-', part(3, 7)],
    ['bytes=9-100', part(9, 1)],
    ['bytes=-4', part(6, 4)],
    ['bytes=-100', part(0, 10)],
    ['Bytes = 3-5', part(3, 3)],
    ['bytes=10-', NOT_SATISFIABLE],
    ['bytes=10-20', NOT_SATISFIABLE],
    ['bytes=-0', NOT_SATISFIABLE],
    ['bytes=5-3', COMPLETE],
    ['bytes=0-1,3-4', COMPLETE],
    ['bytes=-', COMPLETE],
    ['bytes=a-b', COMPLETE],
    ['bytes=1-9999999999999999', COMPLETE],
    ['lines=0-1', COMPLETE],
    ['', COMPLETE],
  ] as const)
    t.same(selectContent({ range }, TAG, 10), expected, range)
  t.same(selectContent({ range: 'bytes=0-' }, TAG, 0), NOT_SATISFIABLE)
  t.same(selectContent({ range: 'bytes=-1' }, TAG, 0), NOT_SATISFIABLE)
})

t.test('applies the conditions of the request', async (t) => {
  const range = 'bytes=1-2'
  for (const [headers, entityTag, expected] of [
    [{}, TAG, COMPLETE],
    [{ ifRange: TAG, range }, TAG, part(1, 2)],
    [{ ifRange: '"b-1"', range }, TAG, COMPLETE],
    [{ ifRange: `W/${TAG}`, range }, TAG, COMPLETE],
    [{ ifRange: 'Wed, 21 Oct 2015 07:28:00 GMT', range }, TAG, COMPLETE],
    [{ ifRange: TAG, range }, null, COMPLETE],
    [{ ifNoneMatch: TAG }, TAG, NOT_MODIFIED],
    [{ ifNoneMatch: `"b", W/${TAG}` }, TAG, NOT_MODIFIED],
    [{ ifNoneMatch: '*' }, TAG, NOT_MODIFIED],
    [{ ifNoneMatch: TAG, range }, TAG, NOT_MODIFIED],
    [{ ifNoneMatch: '"b"', range }, TAG, part(1, 2)],
    [{ ifNoneMatch: '"b"' }, TAG, COMPLETE],
    [{ ifNoneMatch: TAG }, null, COMPLETE],
  ] as const satisfies [ConditionalHeaders, string | null, object][])
    t.same(selectContent(headers, entityTag, 10), expected, JSON.stringify(headers))
})
