// The commands snapshot, snapshots, template, templates, fork, restore and create --from.
import t from 'tap'
import type { Snapshot } from '../../shared/api/snapshots.ts'
import type { Tier } from '../../shared/tiers.ts'
import { waitUntil } from '../support/wait-until.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'])
const fig = await coordinator.findBox('fig')
const { api, addBox, findBox, infra, instance } = coordinator
const { db } = instance.context
const deletedBox = await addBox('deleted')
await api('DELETE', `/boxes/${deletedBox.id}`)
infra.contentBytes = 1_500_000_000
const box = (...args: string[]) => runBox(coordinator, args)
const boxJson = async (...args: string[]) => JSON.parse((await box(...args, '--json')).stdout)

const listSnapshots = async (query = ''): Promise<Snapshot[]> =>
  (await api('GET', `/snapshots${query}`)).json.snapshots

type NewSnapshot = {
  name?: string
  templateName?: string
  tier?: Tier
  kind?: Snapshot['kind']
  /** Default: a deleted box. */
  boxId?: string
  sourceHostname?: string
  isTransient?: boolean
}

/** Takes a snapshot of fig. */
async function add({ name = 'before', templateName, tier, kind, ...source }: NewSnapshot = {}) {
  const { json } = await api('POST', '/snapshots', { boxId: fig.id, name })
  const { id } = json.snapshot
  const find = async () => (await listSnapshots('?transient=1')).find((snapshot) => snapshot.id === id)
  await waitUntil('the snapshot is available', async () => (await find())?.status === 'available')
  if (templateName !== undefined) await api('POST', `/snapshots/${id}/template`, { name: templateName })
  await db
    .updateTable('snapshots')
    .set({
      box_id: source.boxId ?? deletedBox.id,
      source_hostname: source.sourceHostname ?? 'fig',
      transient: source.isTransient ? 1 : 0,
      ...(kind && { kind }),
      ...(tier && { tier }),
    })
    .where('id', '=', id)
    .execute()
  return { id, name }
}
/** The next snapshot is taken when the command has seen it. */
const holdUntilPolled = () => {
  infra.before.capture = () => {
    delete infra.before.capture
    return coordinator.waitForResponse('GET /api/v1/snapshots')
  }
}

t.beforeEach(() => db.deleteFrom('snapshots').execute())

t.test('snapshot waits, prints the id on stdout, and the size and the pause on stderr', async (t) => {
  holdUntilPolled()
  const { code, stdout, stderr } = await box('snapshot', 'fig', 'before', '--description', 'of today')
  t.equal(code, 0)
  const [snapshot] = await listSnapshots()
  t.match(snapshot, { boxId: fig.id, name: 'before', description: 'of today' })
  t.equal(stdout, `${snapshot?.id}\n`)
  t.equal(stderr, 'before: creating\nbefore: available, 1.40 GiB, processes paused for 1 ms\n')
})

t.test('a snapshot without a name gets the name of the box and the time', async (t) => {
  t.match(await box('snapshot', 'fig', '-q'), { code: 0, stderr: '' })
  t.match((await listSnapshots())[0]?.name, /^fig-\d{8}-\d{6}$/)
  t.match(await box('snapshot', 'fig', 'one', '--name', 'two'), { code: 2, stderr: /Two names/ })
})

t.test('snapshot --no-wait returns immediately; --json prints the snapshot', async (t) => {
  t.match(await box('snapshot', 'fig', 'before', '--no-wait'), { code: 0, stderr: 'before: creating\n' })
  t.match(await boxJson('snapshot', 'fig', 'after'), { name: 'after', status: 'available', sizeGb: 1.5 })
})

t.test('snapshot reports why a snapshot failed', async (t) => {
  coordinator.changeNext('GET /api/v1/snapshots', ({ snapshots }) => {
    Object.assign(snapshots[0], { status: 'failed', error: 'the disk is full\u001b[2J' })
  })
  t.match(await box('snapshot', 'fig', 'before'), {
    code: 1,
    stdout: '',
    stderr:
      /^box: The snapshot before failed: the disk is full\uFFFD\[2J\. Delete it with `box snapshots rm snp_/m,
  })
  t.match(await box('snapshot', 'none'), { code: 5, stderr: /No such box: 'none'/ })
})

t.test('an interrupted wait names the command that continues it', async (t) => {
  const result = await runBox(coordinator, ['snapshot', 'fig', 'before'], {
    onSpawn: (child) => coordinator.failNext('GET /api/v1/snapshots', () => child.kill('SIGINT')),
  })
  t.match(result, { code: 130, stderr: /The snapshot before continues: `box wait snp_/ })
})

t.test('snapshots lists the snapshots, those of one box, and with --all the copies of forks', async (t) => {
  await add({ name: 'old', sourceHostname: 'my-kiwi', kind: 'final' })
  const copy = await add({ name: 'copy', kind: 'fork', boxId: fig.id, isTransient: true })
  const { id } = await add({ name: 'new', boxId: fig.id, templateName: 'web', kind: 'template' })
  const [header = '', ...rows] = (await box('snapshots')).stdout.trimEnd().split('\n')
  t.match(header, /^NAME +BOX +KIND +STATUS +SIZE +AGE +ID$/)
  t.match(rows, [
    new RegExp(`^new +fig +template +available +1\\.40 GiB +\\d+s +${id.slice(0, 12)}$`),
    /^old +my-kiwi +final +available/,
  ])
  t.equal(rows.length, 2)
  t.equal((await box('snapshots', '--all', '-q', 'fig')).stdout, `${id}\n${copy.id}\n`)
  t.match((await box('snapshots', 'my-kiwi')).stdout, /old/, 'of a deleted box')
  t.match(await boxJson('snapshots', fig.id), { snapshots: [{ name: 'new' }] })
  t.match(await box('snapshots', 'none'), { code: 5, stderr: /No such box/ })
  t.match((await box('snapshots', '--filter', 'kind=final', '-o', 'wide')).stdout, /^old .*us-west-2/m)
  t.match(await box('snapshots', '--filter', 'kind=x'), {
    code: 2,
    stderr: /manual, template, fork, auto, final/,
  })
})

t.test('a list without snapshots names the command that takes one', async (t) => {
  t.same(await box('snapshots'), {
    code: 0,
    stdout: '',
    stderr: 'No snapshots. Take one with `box snapshot NAME`.\n',
  })
  t.match(await box('templates'), { stderr: 'No templates. Make one with `box template NAME TEMPLATE`.\n' })
})

t.test('a snapshot is found by its id, its template name, its name, or the start of its id', async (t) => {
  const { id } = await add({ name: 'before', templateName: 'web' })
  const other = await add({ name: 'web' })
  for (const typed of [id, id.slice(0, 12), id.slice(4, 14), 'web', 'before']) {
    t.match(await box('restore', typed, '--no-wait'), { code: 0 }, typed)
    t.ok(coordinator.requests.at(-1)?.line.startsWith(`POST /api/v1/snapshots/${id}/restore`), typed)
  }
  await add({ name: 'before' })
  t.match(await box('restore', 'before'), {
    code: 2,
    stderr:
      /^box: 2 snapshots have the name 'before'\. Use an id:\n {2}snp_\w+ {2}fig \(deleted\) {2}[\d-]+ [\d:]+\n {2}snp_/,
  })
  t.match(await box('snapshots', 'rm', 'before'), { code: 2, stderr: /2 snapshots have the name 'before'/ })
  t.match(await box('restore', other.id.slice(0, 5)), { code: /[02]/ })
  t.match(await box('restore', 'nothing'), {
    code: 5,
    stderr: "box: No such snapshot or template: 'nothing'. Run `box snapshots` to list snapshots.\n",
  })
})

t.test('of several snapshots with the name, the one of a box that exists wins', async (t) => {
  const ofFig = await add({ name: 'before', boxId: fig.id })
  await add({ name: 'before' })
  for (const args of [
    ['restore', 'before'],
    ['create', 'my-kaki', '--from', 'before'],
    ['template', 'before', 'web'],
  ])
    t.match(await box(...args), { code: 0 }, args.join(' '))
  t.ok(coordinator.requests.some(({ line }) => line.startsWith(`POST /api/v1/snapshots/${ofFig.id}/restore`)))
  t.equal((await listSnapshots()).find(({ templateName }) => templateName === 'web')?.id, ofFig.id)
  await add({ name: 'before', boxId: fig.id })
  await box('templates', 'rm', 'web')
  t.match(await box('restore', 'before'), {
    code: 2,
    stderr: /3 snapshots have the name.*fig {2}.*\(deleted\)/s,
  })
})

t.test('a name that is taken names the command that frees it', async (t) => {
  await add({ name: 'before' })
  t.match(await box('restore', 'before', 'fig'), {
    code: 1,
    stderr: /`box rename fig NEWNAME` frees the name\. \(name_taken\)\n$/,
  })
})

t.test('restore creates a box, waits, and prints its name', async (t) => {
  await add({ name: 'before', tier: 'pro' })
  coordinator.holdUntilPolled('create')
  t.match(await box('restore', 'before', 'my-kiwi'), {
    code: 0,
    stdout: 'my-kiwi\n',
    stderr: /^(my-kiwi: requested\n)?my-kiwi: provisioning\n(.*\n)*my-kiwi: running\n$/,
  })
  t.match(await boxJson('restore', 'before', '--name', 'my-lychee', '--tier', 'max'), {
    hostname: 'my-lychee',
    tier: 'max',
  })
  t.match(await findBox('my-kiwi'), { tier: 'pro' })
  t.match(await findBox('my-lychee'), { tier: 'max' })
})

t.test('a tier that is too small names the option', async (t) => {
  await add({ name: 'before' })
  infra.contentBytes = 200_000_000_000
  await add({ name: 'large' })
  infra.contentBytes = 1_500_000_000
  t.match(await box('restore', 'large', '--tier', 'nano'), {
    code: 1,
    stderr: /^box: .* Choose the tier with --tier\. \(restore_tier_not_allowed\)\n$/,
  })
})

t.test('fork copies a box, and keeps the snapshot with --keep-snapshot', async (t) => {
  coordinator.holdUntilPolled('create')
  t.match(await box('fork', 'fig', 'my-date'), {
    code: 0,
    stdout: 'my-date\n',
    stderr: /^(my-date: requested\n)?my-date: provisioning\n(.*\n)*my-date: running\n$/,
  })
  t.match(await boxJson('fork', 'fig', '--keep-snapshot', '--tier', 'pro'), {
    box: { tier: 'pro', observedState: 'running' },
    snapshot: { kind: 'fork', sourceBoxHostname: 'fig' },
  })
  t.match(await box('fork', 'fig', 'my-pear', '--keep-snapshot'), {
    stderr: /^box: the snapshot is fig-fork-\S+ \(snp_/m,
  })
  t.match(await box('fork', 'none'), { code: 5, stderr: /No such box/ })
})

t.test('create --from finds the template or snapshot', async (t) => {
  await add({ templateName: 'web' })
  t.match(await box('create', 'my-papaya', '--from', 'web', '-e', 'A=1'), { code: 0, stdout: 'my-papaya\n' })
  t.match((await findBox('my-papaya')).envVars, [{ name: 'A', value: '1' }])
  t.ok(infra.calls.includes(`create ${(await findBox('my-papaya')).id}`))
  t.match(await box('create', '--from', 'none'), { code: 5, stderr: /No such snapshot or template: 'none'/ })
  t.match(await box('create', '--from', 'web', '--region', 'us-east-1'), {
    code: 2,
    stderr: /region of the snapshot/,
  })
})

t.test('template takes a snapshot of a box, or names a snapshot', async (t) => {
  holdUntilPolled()
  t.match(await box('template', 'fig', 'web'), {
    code: 0,
    stdout: 'web\n',
    stderr: 'web: creating\nweb: available, 1.40 GiB, processes paused for 1 ms\n',
  })
  const { id } = await add({ name: 'before' })
  t.match(await box('template', 'before', 'web'), {
    code: 0,
    stdout: 'web\n',
    stderr: /^web \(snp_[0-9a-f]{24}\) had this name before, and stays as a snapshot\.\n$/,
  })
  t.equal((await listSnapshots()).find(({ templateName }) => templateName === 'web')?.id, id)
  t.match(await boxJson('template', id.slice(0, 14), 'api'), {
    snapshot: { id, templateName: 'api' },
    previous: null,
  })
  t.match(await box('template', 'none', 'web'), { code: 5, stderr: /No such box or snapshot: 'none'/ })
})

t.test('a snapshot that is being taken names the command that waits for it', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  infra.before.capture = () => promise
  const { json } = await api('POST', '/snapshots', { boxId: fig.id, name: 'before' })
  const { id } = json.snapshot
  t.match(await box('template', id, 'web'), {
    code: 1,
    stderr: new RegExp(`^box: .* \`box wait ${id}\` waits for it\\. \\(snapshot_in_progress\\)\n$`),
  })
  delete infra.before.capture
  resolve()
  t.match(await box('wait', id), { code: 0 })
})

t.test('templates lists the templates; templates rm removes a name and keeps the snapshot', async (t) => {
  await add({ name: 'plain' })
  const { id } = await add({ name: 'before', templateName: 'web', kind: 'template' })
  t.match((await box('templates')).stdout, /^TEMPLATE .*\nweb .*\n$/)
  t.equal((await box('templates', '-q')).stdout, 'web\n')
  t.match(await box('templates', 'rm', 'none', 'web'), {
    code: 5,
    stdout: '',
    stderr: `box: No such template: 'none'. Run \`box templates\` to list templates.\nweb: removed; its snapshot before (${id}) stays\n`,
  })
  t.equal((await listSnapshots()).length, 2)
  t.equal((await box('templates', '-q')).stdout, '')
})

t.test('snapshots rm deletes several snapshots, tries each, and waits', async (t) => {
  await add({ name: 'one' })
  await add({ name: 'two', templateName: 'web' })
  t.same(await box('snapshots', 'rm', 'one', 'missing', 'web'), {
    code: 5,
    stdout: '',
    stderr:
      "box: No such snapshot or template: 'missing'. Run `box snapshots` to list snapshots.\none: deleted\ntwo: deleted\n",
  })
  t.same(await listSnapshots(), [])
  t.same(await box('snapshots', 'rm', '-f', 'missing'), { code: 0, stdout: '', stderr: '' })
  await add({ name: 'three' })
  t.match(await boxJson('snapshots', 'rm', 'three'), {
    snapshot: { name: 'three' },
    operation: { status: 'completed' },
  })
  await add({ name: 'four' })
  t.match(await box('snapshots', 'rm', 'four', '--no-wait'), { code: 0, stderr: 'four: deleting\n' })
})

t.test('on a terminal, snapshots rm asks', async (t) => {
  await add({ name: 'one' })
  await add({ name: 'two', templateName: 'web' })
  const refused = runBoxInPty(t, coordinator, 'box snapshots rm one two; echo code=$?')
  await refused.waitFor('Delete 2 snapshots (one; two, the template web)? [y/N] ')
  refused.type('n\r')
  await refused.waitFor('nothing was deleted')
  await refused.waitFor('code=1')
  t.equal((await listSnapshots()).length, 2)
  const confirmed = runBoxInPty(t, coordinator, 'box snapshots rm one; echo code=$?')
  await confirmed.waitFor('Delete the snapshot one? [y/N] ')
  confirmed.type('y\r')
  await confirmed.waitFor('one: deleted')
  await confirmed.waitFor('code=0')
})

t.test('the words of docker and gh for two words', async (t) => {
  await add({ name: 'one', templateName: 'web' })
  t.match(await box('snapshot', 'ls', '-q'), { code: 0, stdout: /^snp_/ })
  t.match(await box('template', 'list', '-q'), { code: 0, stdout: 'web\n' })
  t.match(await box('snapshot', 'create', 'fig', 'two', '-q'), { code: 0, stdout: /^snp_/ })
  t.match(await box('snapshot', 'delete', 'two'), { code: 0, stderr: 'two: deleted\n' })
  t.match(await box('template', 'rm', 'web'), { code: 0, stderr: /^web: removed/ })
  t.match(await box('help', 'snapshot', 'ls'), { code: 0, stdout: /^Usage: box snapshots/ })
})

t.test('subcommands have help, JSON errors, and their name in usage errors', async (t) => {
  t.match((await box('snapshots', 'rm', '--help')).stdout, /^Usage: box snapshots rm.*--yes.*Examples:/s)
  t.match(await box('snapshots', 'rm'), {
    code: 2,
    stderr: /missing.*\nType `box snapshots rm SNAPSHOT`.*\nSee 'box snapshots rm --help'\.\n/,
  })
  t.match(await box('snapshots', 'rm', 'none', '--json'), {
    code: 5,
    stderr: /^\{"error":\{"code":"no_such_snapshot"/,
  })
  await add({ name: 'one' })
  const verbose = await box('snapshots', 'rm', 'one', '--verbose')
  t.match(verbose, { code: 0, stderr: /DELETE http.*: 202/ })
})
