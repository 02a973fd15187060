// The pure parts of the dashboard: paths, errors, the list of boxes, ages, and text with hidden characters.

import t from 'tap'
import { createResponseError } from '../../../client/http/errors.ts'
import { formatAge } from '../../../dashboard/data/age.ts'
import { listActions, selectBoxes } from '../../../dashboard/data/items.ts'
import { formatBoxPath, getBoxKey, isBoxId, parseRoute } from '../../../dashboard/data/routes.ts'
import { showHidden } from '../../../dashboard/data/visible-text.ts'
import type { Box } from '../../../shared/api/boxes.ts'

t.test('paths', async (t) => {
  for (const path of ['', 'boxes/', 'boxes']) t.same(parseRoute(path), { page: 'boxes' }, path)
  t.same(parseRoute(formatBoxPath('a/b')), { page: 'box', name: 'a/b', tab: 'overview' })
  for (const path of ['docs', 'boxes/a/other', 'boxes/a/overview/b', 'boxes/%ff', 'sign-in'])
    t.same(parseRoute(path), { page: 'unknown' }, path)
  const box = { id: crypto.randomUUID(), hostname: 'fig', observedState: 'running' } as Box
  t.ok(isBoxId(box.id))
  t.notOk(isBoxId(`${box.id}0`))
  t.equal(getBoxKey(box), 'fig')
  t.equal(getBoxKey({ ...box, observedState: 'terminated' }), box.id)
})

t.test('hidden characters are visible', async (t) => {
  t.equal(showHidden('a\u202eb\u0000\u200d\n\u2066ü'), 'a⟨U+202E⟩b⟨U+0000⟩⟨U+200D⟩⟨U+000A⟩⟨U+2066⟩ü')
})

t.test('errors of both hosts, and of a proxy', async (t) => {
  t.match(
    createResponseError(
      { error: 'name_taken', message: 'Taken.' },
      409,
      new Headers({ 'x-request-id': 'r1' }),
    ),
    {
      code: 'name_taken',
      message: 'Taken.',
      status: 409,
      requestId: 'r1',
    },
  )
  t.match(
    createResponseError({ ok: false, error: { code: 'not_found', message: 'None.' } }, 404, new Headers()),
    {
      code: 'not_found',
      message: 'None.',
    },
  )
  t.match(createResponseError(undefined, 502, new Headers()), {
    code: 'invalid_response',
    message: /status 502/,
  })
})

t.test('ages', async (t) => {
  t.same([-5, 0, 59_999, 60_000, 7_200_000, 172_800_000].map(formatAge), [
    '0 s',
    '0 s',
    '59 s',
    '1 min',
    '2 h',
    '2 d',
  ])
})

const createBox = (hostname: string, fields: Partial<Box>) =>
  ({
    id: hostname,
    hostname,
    kind: 'managed',
    tier: 'lite',
    region: 'us-west-2',
    observedState: 'running',
    desiredState: 'running',
    updatedAt: '2026-01-01T00:00:00.000Z',
    ownerUserId: 'usr_1',
    ...fields,
  }) as Box

t.test('the list is filtered by words and sorted', async (t) => {
  const boxes = new Map(
    [
      createBox('fig', {}),
      createBox('apple', { observedState: 'suspended', updatedAt: '2026-01-02T00:00:00.000Z' }),
      createBox('kiwi', { kind: 'machine', observedState: 'deep_sleep' }),
    ].map((box) => [box.id, box]),
  )
  const select = (...args: [string, Parameters<typeof selectBoxes>[2]]) =>
    selectBoxes(boxes, ...args).map(({ hostname }) => hostname)
  t.same(select('', 'name'), ['apple', 'fig', 'kiwi'])
  t.same(select('', 'activity'), ['apple', 'fig', 'kiwi'])
  t.same(select('', 'state'), ['kiwi', 'fig', 'apple'])
  t.same(select('DEEP sleep', 'name'), ['kiwi'])
  t.same(select('lite fig', 'name'), ['fig'])
  t.same(select('nothing', 'name'), [])
})

t.test('actions depend on the state', async (t) => {
  t.same(listActions(createBox('a', {})), ['suspend', 'fork', 'snapshot', 'delete'])
  t.same(listActions(createBox('a', { observedState: 'suspended' })), ['wake', 'fork', 'snapshot', 'delete'])
  t.same(listActions(createBox('a', { kind: 'machine' })), ['delete'])
  t.same(listActions(createBox('a', { observedState: 'provision_failed' })), ['delete'])
  t.same(listActions(createBox('a', { desiredState: 'terminated' })), [])
})
