// The records of a deleted box by its name: box history, output, audit, events, show, metrics and ps-at.
import t from 'tap'
import { createRecordAdder } from './command-records.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig', 'plum'])
const { api, addBox, findBox, waitForState } = coordinator
const box = (...args: string[]) => runBox(coordinator, args)
const NOTE = /^box: fig was deleted on \d{4}-\d\d-\d\d \d\d:\d\d:\d\d; these are its records\.\n/

async function deleteFig(): Promise<string> {
  const { id } = await findBox('fig')
  await createRecordAdder(coordinator, id)({ command: `on ${id}`, output: Buffer.from(id) })
  await api('DELETE', `/boxes/${id}`)
  await waitForState(id, 'terminated')
  return id
}
const first = await deleteFig()
await addBox('fig')
const last = await deleteFig()

t.test('the name means the box that was deleted last, and a note says so', async (t) => {
  const history = await box('history', 'fig', '--json')
  t.match(history, { code: 0, stderr: NOTE })
  t.match(JSON.parse(history.stdout), { commands: [{ command: `on ${last}` }] })
  const commandId = JSON.parse(history.stdout).commands[0].id
  t.match(await box('output', 'fig', commandId), { code: 0, stdout: last, stderr: NOTE })
  t.match(await box('show', 'fig'), {
    code: 0,
    stdout: new RegExp(`${last}[^]*terminated for`),
    stderr: NOTE,
  })
  t.match(await box('events', 'fig'), { code: 0, stdout: /→ terminated/, stderr: NOTE })
  t.match(await box('events', 'fig', '-f'), { code: 5, stdout: /→ terminated/ })
  t.match(await box('metrics', 'fig'), { code: 0, stderr: NOTE })
  t.match(await box('ps-at', 'fig', '10m'), { code: 5, stderr: NOTE })
  const audit = await box('audit', '--box', 'fig', '--json')
  t.match(audit, { code: 0, stderr: NOTE })
  const { events } = JSON.parse(audit.stdout) as { events: { kind: string; boxId: string }[] }
  t.ok(events.some(({ kind }) => kind === 'box.delete'))
  t.same(new Set(events.map(({ boxId }) => boxId)), new Set([last]))
})

t.test('other commands say that the box was deleted', async (t) => {
  for (const args of [
    ['exec', 'fig', 'ls'],
    ['suspend', 'fig'],
  ])
    t.match(await box(...args), {
      stderr: "box: No such box: 'fig'. It was deleted: `box history fig` shows its commands.\n",
    })
})

t.test('an earlier one has its id, and the start of it', async (t) => {
  for (const typed of [first, first.slice(0, 8)]) {
    const { code, stdout, stderr } = await box('history', typed, '--json')
    t.match({ code, stderr }, { code: 0, stderr: NOTE })
    t.match(JSON.parse(stdout), { commands: [{ command: `on ${first}` }] })
  }
})

t.test('commands that change something do not take the name of a deleted box', async (t) => {
  for (const args of [
    ['history', 'fig', '--delete-all'],
    ['set', 'fig', '--ttl', '2h'],
    ['rm', 'fig', '-y'],
  ])
    t.match(await box(...args), { code: 5, stdout: '', stderr: /No such box: 'fig'/ }, args.join(' '))
  t.match(await box('history', 'fig', '--delete', 'p_1'), { code: 5, stderr: /a deleted box need its id/ })
  t.match(await box('history', first, '--delete-all'), { code: 0, stderr: /1 records deleted/ })
})

t.test('a name that no box had is an error with similar names', async (t) => {
  for (const args of [
    ['history', 'plumm'],
    ['audit', '--box', 'plumm'],
  ])
    t.match(await box(...args), { code: 5, stdout: '', stderr: /No such box: 'plumm'.*plum/ }, args.join(' '))
})

t.test('a live box of the name wins', async (t) => {
  const { id } = await addBox('fig')
  t.match(await box('show', 'fig'), { code: 0, stdout: new RegExp(id), stderr: '' })
  t.match(await box('history', 'fig'), { code: 0, stdout: '', stderr: 'No commands recorded on fig.\n' })
  const audit = await box('audit', '--box', 'fig', '--json')
  t.match(JSON.parse(audit.stdout), { events: [{ boxId: id }] })
})
