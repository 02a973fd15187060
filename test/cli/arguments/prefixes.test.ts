// Unique prefixes of the ids of boxes and records, and of the names of terminal sessions.
import t from 'tap'
import { findBox } from '../../../cli/connection/find-box.ts'
import { createRecordAdder } from '../command-records.ts'
import { startCliCoordinator } from '../coordinator.ts'
import { runBox } from '../run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const fig = await coordinator.findBox('fig')
const add = createRecordAdder(coordinator, fig.id)
const box = (...args: string[]) => runBox(coordinator, args)

t.test('a prefix of the id identifies a box, at the control plane and at the edge', async (t) => {
  const prefix = fig.id.slice(0, 8)
  t.match(JSON.parse((await box('show', prefix, '--json')).stdout), { box: { hostname: 'fig' } })
  t.match(await box('sessions', prefix), { code: 0, stderr: /No terminal sessions on fig/ })
  t.match(
    await box('show', prefix.slice(0, 7)),
    { code: 5, stderr: /No such box: '[0-9a-f]{7}'/ },
    'too short',
  )
})

t.test('a name wins over a prefix, a deleted box is not found by a prefix', async (t) => {
  const createBox = (hostname: string, id: string, observedState = 'running') =>
    Object.assign({}, fig, { hostname, id, observedState })
  const boxes = [
    createBox('plum', 'cafe0000-0000-4000-8000-000000000000'),
    createBox('cafe0000', '11110000-0000-4000-8000-000000000000'),
    createBox('lime', '22220000-0000-4000-8000-000000000000', 'terminated'),
    createBox('kiwi', 'cafe0000-1111-4000-8000-000000000000'),
  ]
  t.equal(findBox(boxes, 'cafe0000')?.hostname, 'cafe0000')
  t.equal(findBox(boxes, 'cafe0000-1')?.hostname, 'kiwi')
  t.equal(findBox(boxes, '22220000'), undefined)
  t.equal(findBox(boxes, boxes[2]?.id ?? '')?.hostname, 'lime', 'the whole id of a deleted box')
  t.throws(
    () =>
      findBox(
        boxes.filter(({ hostname }) => hostname !== 'cafe0000'),
        'cafe0000',
      ),
    {
      message:
        /^'cafe0000' matches 2 boxes\. Type more characters:\n {2}cafe0000-.* plum\n {2}cafe0000-1.* kiwi$/,
      exitCode: 2,
    },
  )
})

t.test('a prefix identifies a record, also beyond the first page; no id is the newest record', async (t) => {
  // No random id begins so.
  const oldest = await add({ id: 'p_fffffffffff1000000000000', output: Buffer.from('oldest\n') })
  for (let count = 0; count < 250; count++) await add({})
  const newest = await add({ id: 'p_fffffffffff2000000000000', output: Buffer.from('newest\n') })
  t.same(await box('output', 'fig', 'fffffffffff1'), { code: 0, stdout: 'oldest\n', stderr: '' })
  t.same(await box('output', 'fig'), { code: 0, stdout: 'newest\n', stderr: '' })
  t.match(await box('output', 'fig', 'p_fffffffffff'), {
    code: 2,
    stderr: `box: 'p_fffffffffff' matches 2 records of fig. Type more characters:\n  ${newest.id}  true\n  ${oldest.id}  true\n`,
  })
  t.match(await box('history', 'fig', '--delete', 'fffffffffff1'), {
    code: 0,
    stderr: `fig: record ${oldest.id} deleted\n`,
  })
  t.match(await box('output', 'fig', 'fffffffffff1'), {
    code: 5,
    stderr: /No such record on fig: 'fffffffffff1'/,
  })
})

t.test('without records, output fails', async (t) => {
  await box('history', 'fig', '--delete-all')
  t.match(await box('output', 'fig'), { code: 5, stderr: 'box: No commands recorded on fig.\n' })
})
