// The command history on the command line: box history in pages, and box output byte for byte.
import t from 'tap'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { fakeHistory } from './fake-history.ts'
import { createRandom } from './random.ts'
import { runBox, runBoxForBytes } from './run-box.ts'

const fake = await startFakeCoordinator(t)
const { id: boxId } = await fake.addBox('fig')
const { add, records } = fakeHistory(fake)
const box = (...args: string[]) => runBox(fake.url, args)
const bytes = createRandom(1).bytes(4321)

t.test('nothing has run', async (t) => {
  t.match(await box('history', 'fig'), { code: 0, stdout: '', stderr: 'No command of fig is recorded.\n' })
})

t.test('who ran what, and how it ended', async (t) => {
  add({ command: null, status: 'killed', exitCode: null, signal: 'KILL' })
  add({ mode: 'detached', source: 'api', status: 'running', exitCode: null, finishedAt: null })
  add({ command: 'exit 3', exitCode: 3, actor: { kind: 'system', userId: null, tokenId: null } })
  const { code, stdout } = await box('history', 'fig')
  const [head = '', ...rows] = stdout.trimEnd().split('\n')
  t.equal(code, 0)
  t.match(head, /^ID +STARTED +MODE +SOURCE +BY +STATUS +TOOK +COMMAND$/)
  t.same(
    rows.map((row) => row.split(/ {2,}/).slice(2)),
    [
      ['sync', 'cli', 'system', 'exited 3', '1m 5s', 'exit 3'],
      ['detached', 'api', 'usr_1', 'running', '-', 'true'],
      ['sync', 'cli', 'usr_1', 'killed KILL', '1m 5s', '(not kept)'],
    ],
  )
  const filtered = JSON.parse((await box('history', boxId, '--mode', 'detached', '--json')).stdout)
  t.match(filtered, { commands: [{ mode: 'detached' }], nextBefore: null })
})

t.test('pages, and all of them', async (t) => {
  for (let count = 0; count < 250; count++) add({ status: 'failed', exitCode: null })
  const first = await box('history', 'fig', '--status', 'failed', '--limit', '20')
  t.equal(first.stdout.split('\n').length, 22)
  const [, next = ''] = /There are more: box (.*)\n$/.exec(first.stderr) ?? []
  t.match(next, /^history fig --status failed --limit 20 --before p_/)
  const second = await box(...next.split(' '))
  t.equal(second.stdout.split('\n').length, 22)
  t.notOk(second.stdout.includes(first.stdout.split('\n')[20]?.slice(0, 26) ?? ''))
  const all = JSON.parse((await box('history', 'fig', '--all', '--json')).stdout)
  t.equal(new Set(all.commands.map(({ id }: { id: string }) => id)).size, 253)
})

t.test('output: every page of each stream, byte for byte', async (t) => {
  const { id } = add({ output: bytes })
  const seen = await runBoxForBytes(fake.url, ['output', 'fig', id])
  t.match(seen, { code: 0 })
  t.ok(seen.stdout.equals(bytes))
  t.equal(seen.stderr.length, 0)
  const other = await runBoxForBytes(fake.url, ['output', 'fig', id, '--stderr'])
  t.ok(other.stdout.equals(Buffer.from(bytes).reverse()))
})

t.test('output that is no longer kept is said; so is output that never was', async (t) => {
  const cut = await runBoxForBytes(fake.url, ['output', 'fig', add({ output: bytes, kept: 4000 }).id])
  t.ok(cut.stdout.equals(bytes.subarray(4000)))
  t.match(cut.stderr.toString(), /^box: 4000 bytes of stdout before this are missing.*\n$/)
  const { id } = add({ outputKept: false, output: bytes, kept: bytes.length, command: null, cwd: null })
  t.match(await box('output', 'fig', id), { code: 0, stdout: '', stderr: /^box: .*zero data retention\.\n$/ })
})

t.test('output of a command that runs goes on to its end', async (t) => {
  const running = add({
    output: bytes.subarray(0, 1500),
    status: 'running',
    exitCode: null,
    finishedAt: null,
  })
  const record = records.find(({ id }) => id === running.id)
  const seen = await runBoxForBytes(fake.url, ['output', 'fig', running.id], {
    meanwhile: (child) =>
      child.stdout?.once('data', () => {
        if (record) Object.assign(record, { output: bytes, status: 'exited' })
      }),
  })
  t.ok(seen.stdout.equals(bytes))
  t.equal(seen.code, 0)
})

t.test('deleting one, and all', async (t) => {
  const { id } = add({})
  t.same(await box('history', 'fig', '--delete', id), {
    code: 0,
    stdout: '',
    stderr: `fig: record ${id} deleted\n`,
  })
  t.match(await box('history', 'fig', '--delete', id), {
    code: 5,
    stderr: /no record p_.* of fig.*box history fig/,
  })
  t.match(await box('output', 'fig', id), { code: 5, stderr: /no record/ })
  t.match(await box('history', 'fig', '--delete-all', '--all'), { code: 2, stderr: /cannot be used with/ })
  const count = records.length
  t.match(await box('history', 'fig', '--delete-all', '--json'), {
    code: 0,
    stdout: `{\n  "deleted": ${count}\n}\n`,
  })
  t.equal(records.length, 0)
  t.match(await box('history', 'plum'), { code: 5, stderr: /no box plum/ })
})
