// Coding agents can write the state directory: whatever is at the paths of its files, the agent starts, and other runs are
// not affected.
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { toProcessId } from '../../../../agent/prompts/runs/run-record.ts'
import { forEachReplacement } from '../../../support/replaced-file.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { enqueue, openPrompts, start } from '../prompts-support.ts'
import { createTestRuns, reopen } from './support.ts'

t.test('files of a run', async (t) => {
  await forEachReplacement(t, async (t, replace) => {
    const first = await createTestRuns(t)
    const other = await first.start('normal.sh')
    const damaged = await Promise.all(Array.from({ length: 3 }, () => first.start('normal.sh')))
    for (const { id } of [other, ...damaged]) await first.waitForEnd(id)
    await first.close()
    const [record, checkpoints, prompt] = damaged.map(({ id }) => join(first.dir, 'runs', id))
    replace(join(record ?? '', 'run.json'))
    replace(join(checkpoints ?? '', 'checkpoints'))
    replace(join(prompt ?? '', 'prompt'))
    replace(join(first.dir, 'stopping'))

    const second = await reopen(t, first)
    const ids = second.runs.list().map(({ id }) => id)
    for (const { id } of [other, ...damaged.slice(1)]) t.ok(ids.includes(id))
    t.notOk(ids.includes(damaged[0]?.id ?? ''), 'a run without its record is deleted')
    for (const id of ids) t.equal((await second.readAll(id)).length, 4)
    for (const id of ids) t.match(await second.runs.readStatus(id), { run: { status: 'done' } })
    t.match(await second.waitForEnd((await second.start('normal.sh')).id), { status: 'done' })
    second.runs.expectStop()
    const third = await reopen(t, second)
    t.equal(third.runs.list().length, ids.length + 1)
  })
})

t.test('files of a run in progress', async (t) => {
  await forEachReplacement(t, async (t, replace) => {
    const first = await createTestRuns(t, { checkpointBytes: 1 })
    const { id } = await first.start('wait.sh')
    await first.readPage(id, 1, 10, 15_000)
    const runDir = join(first.dir, 'runs', id)
    for (const name of ['position', 'checkpoints', 'run.json.new']) replace(join(runDir, name))
    const second = await reopen(t, first, { checkpointBytes: 1 })
    t.match(second.get(id), { status: 'running' })
    writeFileSync(join(first.home, 'go'), '')
    t.match(await second.waitForEnd(id), { status: 'done', eventCount: 4 })
    t.equal((await second.readAll(id)).length, 4)
    const third = await reopen(t, second)
    t.match(third.get(id), { status: 'done', eventCount: 4 })
  })
})

t.test('output that is replaced by a directory', async (t) => {
  const first = await createTestRuns(t)
  const [lost, other] = [await first.start('wait.sh'), await first.start('wait.sh')]
  for (const { id } of [lost, other]) await first.readPage(id, 1, 10, 15_000)
  await first.close()
  const stdout = join(first.dir, 'processes', toProcessId(lost.id), 'stdout')
  rmSync(stdout)
  mkdirSync(stdout)
  const second = await reopen(t, first)
  writeFileSync(join(first.home, 'go'), '')
  t.match(await second.waitForEnd(other.id), { status: 'done' })
  t.match(await second.waitForEnd(lost.id), { status: 'failed' })
})

t.test('files of the queue and of the conversations', async (t) => {
  await forEachReplacement(t, async (t, replace) => {
    const { prompts, fake, dir } = await openPrompts(t, { limits: { runs: 1 } })
    const first = await start(prompts)
    const [kept, entry, prompt] = [
      await enqueue(prompts, { new: true }),
      await enqueue(prompts, { new: true }),
      await enqueue(prompts, { new: true }),
    ]
    await prompts.close()
    replace(join(dir, 'conversations.json'))
    replace(join(dir, 'conversations.json.new'))
    replace(join(dir, 'queue', `${entry.id}.json`))
    replace(join(dir, 'queue', `${prompt.id}.prompt`))
    const restarted = await openPrompts(t, { fake, dir, limits: { runs: 1 } })
    const queued = restarted.prompts.list(undefined).queued.map(({ id }) => id)
    t.ok(queued.includes(kept.id))
    t.notOk(queued.includes(entry.id))
    const conversations = restarted.prompts.listConversations().conversations.map(({ id }) => id)
    for (const { conversationId } of [first, kept]) t.ok(conversations.includes(conversationId))
    await enqueue(restarted.prompts, { conversationId: first.conversationId })
    await restarted.prompts.close()
    const again = await openPrompts(t, { fake, dir, limits: { runs: 1 } })
    t.equal(again.prompts.list(undefined).queued.length, queued.length + 1)
  })
})

t.test('a copied run, and entries that are no runs', async (t) => {
  const first = await createTestRuns(t)
  const { id } = await first.start('normal.sh')
  await first.waitForEnd(id)
  await first.close()
  const runsDir = join(first.dir, 'runs')
  execFileSync('cp', ['-r', join(runsDir, id), join(runsDir, 'run_0123456789abcdef01234567')])
  mkdirSync(join(runsDir, 'other'))
  writeFileSync(join(runsDir, 'run_76543210fedcba9876543210'), '')
  const second = await reopen(t, first)
  t.same(
    second.runs.list().map((run) => run.id),
    [id],
  )
  t.ok(existsSync(join(runsDir, 'other')))
})

t.test('directories that are not writable, as in the module cache of Go', async (t) => {
  const dir = createTempDir(t, 'readonly')
  const tree = join(dir, 'tree')
  mkdirSync(join(tree, 'a/b'), { recursive: true })
  writeFileSync(join(tree, 'a/b/file'), '')
  const isRoot = process.getuid?.() === 0
  // Root may delete in such directories.
  const uid = 65_534
  if (isRoot) for (const path of [dir, tree, join(tree, 'a'), join(tree, 'a/b')]) chownSync(path, uid, uid)
  for (const path of ['a/b', 'a']) chmodSync(join(tree, path), 0o500)
  const module = join(import.meta.dirname, '../../../../agent/prompts/runs/remove-tree.ts')
  const program = `import { removeTree } from ${JSON.stringify(module)}; await removeTree(process.argv[1])`
  execFileSync(process.execPath, ['--input-type=module', '-e', program, tree], {
    ...(isRoot && { uid, gid: uid }),
    cwd: dir,
  })
  t.notOk(existsSync(tree))
})
