// box history and box output: pages, filters, deletion, and output byte for byte.
import t from 'tap'
import { createTestSession } from '../support/session.ts'
import { createRecordAdder } from './command-records.ts'
import { startCliCoordinator } from './coordinator.ts'
import { createRandom } from './random.ts'
import { runBox, runBoxForBytes } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'])
const { api, addBox, findBox } = coordinator
const { id: boxId } = await findBox('fig')
const add = createRecordAdder(coordinator, boxId)
const box = (...args: string[]) => runBox(coordinator, args)
const bytes = createRandom(1).bytes(4321)

t.test('prints a message on stderr for an empty history', async (t) => {
  t.match(await box('history', 'fig'), { code: 0, stdout: '', stderr: 'No commands recorded on fig.\n' })
})

t.test('lists commands with the name of the user, where it is known, and the exit status', async (t) => {
  const { userId } = await createTestSession(coordinator, 'member')
  await add({ command: null, status: 'killed', exitCode: null, signal: 'KILL' })
  await add({ mode: 'detached', source: 'api', status: 'running', exitCode: null, finishedAt: null })
  await add({ actor: { actor_kind: 'user', actor_user_id: userId } })
  await add({ command: 'exit 3', exitCode: 3, actor: { actor_kind: 'system', actor_user_id: null } })
  const { code, stdout } = await box('history', 'fig')
  const [header = '', ...rows] = stdout.trimEnd().split('\n')
  t.equal(code, 0)
  t.match(header, /^ID +STARTED +MODE +SOURCE +BY +STATUS +TOOK +COMMAND$/)
  t.same(
    rows.map((row) => row.split(/ {2,}/).slice(2)),
    [
      ['sync', 'cli', 'system', 'exited 3', '1m 5s', 'exit 3'],
      ['sync', 'cli', userId.slice(0, 12), 'exited 0', '1m 5s', 'true'],
      ['detached', 'api', 'Owner', 'running', '-', 'true'],
      ['sync', 'cli', 'Owner', 'killed KILL', '1m 5s', '(not stored)'],
    ],
  )
  const filtered = JSON.parse((await box('history', boxId, '--mode', 'detached', '--json')).stdout)
  t.match(filtered, { commands: [{ mode: 'detached' }], nextBefore: null })
})

t.test('prints one page and the command for the next one; --all prints every page', async (t) => {
  for (let count = 0; count < 250; count++) await add({ status: 'failed', exitCode: null })
  const first = await box('history', 'fig', '--status', 'failed', '--limit', '20')
  t.equal(first.stdout.split('\n').length, 22)
  const [, next = ''] = /Older commands: box (.*)\n$/.exec(first.stderr) ?? []
  t.match(next, /^history fig --status failed --limit 20 --before \w+$/)
  const second = await box(...next.split(' '))
  t.equal(second.stdout.split('\n').length, 22)
  t.notOk(second.stdout.includes(first.stdout.split('\n')[20]?.slice(0, 26) ?? ''))
  const all = JSON.parse((await box('history', 'fig', '--all', '--json')).stdout)
  t.equal(new Set(all.commands.map(({ id }: { id: string }) => id)).size, 254)
})

t.test('--since ends at a time, and --all without a name merges the boxes', async (t) => {
  const now = Date.now()
  const ago = (minutes: number) => new Date(now - minutes * 60_000).toISOString()
  const adders = []
  for (const name of ['plum', 'kiwi']) adders.push(createRecordAdder(coordinator, (await addBox(name)).id))
  await api('DELETE', `/boxes/${boxId}/commands`)
  for (const [index, minutes] of [90, 40, 30, 20, 10].entries())
    await adders[index % 2]?.({ command: `of-${minutes}`, startedAt: ago(minutes), finishedAt: ago(minutes) })
  const list = async (...args: string[]) => {
    const { code, stdout, stderr } = await box('history', ...args, '--no-header')
    t.equal(code, 0, stderr)
    return stdout
      .trimEnd()
      .split('\n')
      .map((row) => row.split(/ {2,}/))
  }
  const commands = async (...args: string[]) => (await list(...args)).map((row) => row.at(-1))
  t.same(await commands('plum', '--since', '35m'), ['of-10', 'of-30'])
  t.same(await commands('plum', '--since', '2h', '--limit', '2'), ['of-10', 'of-30'])
  const all = await list('--all')
  t.same(
    all.map((row) => row.at(-1)),
    ['of-10', 'of-20', 'of-30', 'of-40', 'of-90'],
  )
  t.same(
    all.map((row) => row[1]),
    ['plum', 'kiwi', 'plum', 'kiwi', 'plum'],
  )
  t.same(await commands('--all', '--since', '1h'), ['of-10', 'of-20', 'of-30', 'of-40'])
  t.match(await box('history', '--all', '--limit', '3'), {
    stdout: /of-10\n.*of-20\n.*of-30\n$/,
    stderr: 'There are older commands: use a larger --limit, --since, or the name of a box.\n',
  })
  t.match(await box('history'), { code: 2, stderr: /`box history --all` lists the newest commands of all/ })
  t.match(await box('history', 'fig', '--all', '--limit', '3'), {
    code: 2,
    stderr: /--all cannot be used with --limit/,
  })
  t.match(await box('history', 'fig', '--since', 'sometime'), {
    code: 2,
    stderr: /--since must be a duration/,
  })
  await box('rm', '-y', 'plum', 'kiwi')
})

t.test('rejects an invalid --limit', async (t) => {
  const stderr = 'box: --limit must be an integer between 1 and 200.\n'
  t.same(await box('history', 'fig', '--limit', 'many'), { code: 2, stdout: '', stderr })
  t.same(await box('history', 'fig', '--limit', '0'), { code: 2, stdout: '', stderr })
  t.same(await box('history', 'fig', '--limit', '201'), { code: 2, stdout: '', stderr })
})

t.test('output prints every page of each stream, byte for byte', async (t) => {
  const { id } = await add({ output: bytes })
  const stdout = await runBoxForBytes(coordinator, ['output', 'fig', id])
  t.match(stdout, { code: 0 })
  t.ok(stdout.stdout.equals(bytes))
  t.equal(stdout.stderr.length, 0)
  const stderr = await runBoxForBytes(coordinator, ['output', 'fig', id, '--stderr'])
  t.ok(stderr.stdout.equals(Buffer.from(bytes).reverse()))
})

t.test('output reports bytes that were discarded, and output that was never stored', async (t) => {
  const { id: truncatedId } = await add({ output: bytes, firstStoredByte: 4000 })
  const truncated = await runBoxForBytes(coordinator, ['output', 'fig', truncatedId])
  t.ok(truncated.stdout.equals(bytes.subarray(4000)))
  t.match(truncated.stderr.toString(), /^box: 4000 bytes of stdout before this point are missing.*\n$/)
  const { id } = await add({
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
  const running = await add({
    output: bytes.subarray(0, 1500),
    status: 'running',
    exitCode: null,
    finishedAt: null,
  })
  const { code, stdout } = await runBoxForBytes(coordinator, ['output', 'fig', running.id], {
    onSpawn: (child) => child.stdout?.once('data', () => void running.append(bytes, 'exited')),
  })
  t.ok(stdout.equals(bytes))
  t.equal(code, 0)
})

t.test('deletes one record, or all', async (t) => {
  const { id } = await add({})
  t.same(await box('history', 'fig', '--delete', id), {
    code: 0,
    stdout: '',
    stderr: `fig: record ${id} deleted\n`,
  })
  const noSuchRecord = (missing: string) => ({
    code: 5,
    stderr: `box: No such record on fig: '${missing}'. Run \`box history fig\` to list records.\n`,
  })
  const unknown = 'p_000000000000000000000000'
  t.match(await box('history', 'fig', '--delete', unknown), noSuchRecord(unknown))
  t.match(await box('output', 'fig', id), noSuchRecord(id))
  t.match(await box('history', 'fig', '--delete-all', '--all'), { code: 2, stderr: /cannot be used with/ })
  const { commands } = (await api('GET', `/boxes/${boxId}/commands?limit=200`)).json
  t.ok(commands.length > 0)
  t.match(await box('history', 'fig', '--delete-all', '--json'), {
    code: 0,
    stdout: `{\n  "deleted": ${commands.length}\n}\n`,
  })
  t.same((await api('GET', `/boxes/${boxId}/commands`)).json.commands, [])
  t.match(await box('history', 'lime'), { code: 5, stderr: /No such box: 'lime'/ })
})
