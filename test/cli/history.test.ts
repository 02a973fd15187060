// box history and box output: pages, filters, deletion, and output byte for byte.
import t from 'tap'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { addFakeHistory } from './fake-history.ts'
import { createRandom } from './random.ts'
import { runBox, runBoxForBytes } from './run-box.ts'

const fake = await startFakeCoordinator(t)
const { id: boxId } = await fake.addBox('fig')
const { add, records } = addFakeHistory(fake)
const box = (...args: string[]) => runBox(fake.url, args)
const bytes = createRandom(1).bytes(4321)

t.test('prints a message on stderr for an empty history', async (t) => {
  t.match(await box('history', 'fig'), { code: 0, stdout: '', stderr: 'No commands recorded on fig.\n' })
})

t.test('lists commands with the name of the user, where it is known, and the exit status', async (t) => {
  add({ command: null, status: 'killed', exitCode: null, signal: 'KILL' })
  add({ mode: 'detached', source: 'api', status: 'running', exitCode: null, finishedAt: null })
  add({ actor: { kind: 'user', userId: 'usr_0123456789abcdef', tokenId: 'key_2' } })
  add({ command: 'exit 3', exitCode: 3, actor: { kind: 'system', userId: null, tokenId: null } })
  const { code, stdout } = await box('history', 'fig')
  const [header = '', ...rows] = stdout.trimEnd().split('\n')
  t.equal(code, 0)
  t.match(header, /^ID +STARTED +MODE +SOURCE +BY +STATUS +TOOK +COMMAND$/)
  t.same(
    rows.map((row) => row.split(/ {2,}/).slice(2)),
    [
      ['sync', 'cli', 'system', 'exited 3', '1m 5s', 'exit 3'],
      ['sync', 'cli', 'usr_01234567', 'exited 0', '1m 5s', 'true'],
      ['detached', 'api', 'owner', 'running', '-', 'true'],
      ['sync', 'cli', 'owner', 'killed KILL', '1m 5s', '(not stored)'],
    ],
  )
  const filtered = JSON.parse((await box('history', boxId, '--mode', 'detached', '--json')).stdout)
  t.match(filtered, { commands: [{ mode: 'detached' }], nextBefore: null })
})

t.test('prints one page and the command for the next one; --all prints every page', async (t) => {
  for (let count = 0; count < 250; count++) add({ status: 'failed', exitCode: null })
  const first = await box('history', 'fig', '--status', 'failed', '--limit', '20')
  t.equal(first.stdout.split('\n').length, 22)
  const [, next = ''] = /Older commands: box (.*)\n$/.exec(first.stderr) ?? []
  t.match(next, /^history fig --status failed --limit 20 --before p_/)
  const second = await box(...next.split(' '))
  t.equal(second.stdout.split('\n').length, 22)
  t.notOk(second.stdout.includes(first.stdout.split('\n')[20]?.slice(0, 26) ?? ''))
  const all = JSON.parse((await box('history', 'fig', '--all', '--json')).stdout)
  t.equal(new Set(all.commands.map(({ id }: { id: string }) => id)).size, 254)
})

t.test('rejects an invalid --limit', async (t) => {
  const stderr = 'box: --limit must be an integer between 1 and 200.\n'
  t.same(await box('history', 'fig', '--limit', 'many'), { code: 2, stdout: '', stderr })
  t.same(await box('history', 'fig', '--limit', '0'), { code: 2, stdout: '', stderr })
  t.same(await box('history', 'fig', '--limit', '201'), { code: 2, stdout: '', stderr })
})

t.test('output prints every page of each stream, byte for byte', async (t) => {
  const { id } = add({ output: bytes })
  const stdout = await runBoxForBytes(fake.url, ['output', 'fig', id])
  t.match(stdout, { code: 0 })
  t.ok(stdout.stdout.equals(bytes))
  t.equal(stdout.stderr.length, 0)
  const stderr = await runBoxForBytes(fake.url, ['output', 'fig', id, '--stderr'])
  t.ok(stderr.stdout.equals(Buffer.from(bytes).reverse()))
})

t.test('output reports bytes that were discarded, and output that was never stored', async (t) => {
  const { id: truncatedId } = add({ output: bytes, firstStoredByte: 4000 })
  const truncated = await runBoxForBytes(fake.url, ['output', 'fig', truncatedId])
  t.ok(truncated.stdout.equals(bytes.subarray(4000)))
  t.match(truncated.stderr.toString(), /^box: 4000 bytes of stdout before this point are missing.*\n$/)
  const { id } = add({
    outputKept: false,
    output: bytes,
    firstStoredByte: bytes.length,
    command: null,
    cwd: null,
  })
  t.match(await box('output', 'fig', id), {
    code: 0,
    stdout: '',
    stderr: /^box: .*zero data retention was on\.\n$/,
  })
})

t.test('output of a running command continues until it exits', async (t) => {
  const running = add({
    output: bytes.subarray(0, 1500),
    status: 'running',
    exitCode: null,
    finishedAt: null,
  })
  const record = records.find(({ id }) => id === running.id)
  const { code, stdout } = await runBoxForBytes(fake.url, ['output', 'fig', running.id], {
    onSpawn: (child) =>
      child.stdout?.once('data', () => {
        if (record) Object.assign(record, { output: bytes, status: 'exited' })
      }),
  })
  t.ok(stdout.equals(bytes))
  t.equal(code, 0)
})

t.test('deletes one record, or all', async (t) => {
  const { id } = add({})
  t.same(await box('history', 'fig', '--delete', id), {
    code: 0,
    stdout: '',
    stderr: `fig: record ${id} deleted\n`,
  })
  const noSuchRecord = {
    code: 5,
    stderr: `box: No such record on fig: '${id}'. Run \`box history fig\` to list records.\n`,
  }
  t.match(await box('history', 'fig', '--delete', id), noSuchRecord)
  t.match(await box('output', 'fig', id), noSuchRecord)
  t.match(await box('history', 'fig', '--delete-all', '--all'), { code: 2, stderr: /cannot be used with/ })
  const count = records.length
  t.match(await box('history', 'fig', '--delete-all', '--json'), {
    code: 0,
    stdout: `{\n  "deleted": ${count}\n}\n`,
  })
  t.equal(records.length, 0)
  t.match(await box('history', 'plum'), { code: 5, stderr: /No such box: 'plum'/ })
})
