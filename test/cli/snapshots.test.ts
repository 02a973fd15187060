// The commands snapshot, snapshots, template, templates, fork, restore and create --from.
import t from 'tap'
import { boxSchema } from '../../shared/api/boxes.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { sendJson, startFakeCoordinator } from './fake-coordinator.ts'
import { addFakeSnapshots } from './fake-snapshots.ts'
import { runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
const fig = await fake.addBox('fig')
const { snapshots, bodies, add } = addFakeSnapshots(fake)
const box = (...args: string[]) => runBox(fake.url, args)
const boxJson = async (...args: string[]) => JSON.parse((await box(...args, '--json')).stdout)
const refuseNext = (line: string, status: number, code: string) =>
  fake.handleNext(line, (response) => sendJson(response, { error: code, message: 'Refused.' }, status))

t.beforeEach(() => {
  snapshots.length = 0
  bodies.length = 0
})

t.test('snapshot waits, prints the id on stdout, and the size and the pause on stderr', async (t) => {
  const { code, stdout, stderr } = await box('snapshot', 'fig', 'before', '--description', 'of today')
  t.equal(code, 0)
  t.equal(stdout, `${snapshots[0]?.id}\n`)
  t.equal(stderr, 'before: creating\nbefore: available, 1.40 GiB, processes paused for 35 ms\n')
  t.same(bodies, [{ boxId: fig.id, name: 'before', description: 'of today' }])
})

t.test('a snapshot without a name gets the name of the box and the time', async (t) => {
  t.match(await box('snapshot', 'fig', '-q'), { code: 0, stderr: '' })
  t.match(snapshots[0]?.name, /^fig-\d{8}-\d{6}$/)
  t.match(await box('snapshot', 'fig', 'one', '--name', 'two'), { code: 2, stderr: /Two names/ })
})

t.test('snapshot --no-wait returns immediately; --json prints the snapshot', async (t) => {
  t.match(await box('snapshot', 'fig', 'before', '--no-wait'), { code: 0, stderr: 'before: creating\n' })
  t.match(await boxJson('snapshot', 'fig', 'after'), { name: 'after', status: 'available', sizeGb: 1.5 })
})

t.test('snapshot reports why a snapshot failed', async (t) => {
  fake.handleNext('GET /api/v1/snapshots', (response) => {
    Object.assign(snapshots[0] ?? {}, { status: 'failed', error: 'the disk is full\u001b[2J' })
    sendJson(response, { snapshots })
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
  const result = await runBox(fake.url, ['snapshot', 'fig', 'before'], {
    onSpawn: (child) => fake.handleNext('GET /api/v1/snapshots', () => child.kill('SIGINT')),
  })
  t.match(result, { code: 130, stderr: /The snapshot before continues: `box wait snp_/ })
})

t.test('snapshots lists the snapshots, those of one box, and with --all the copies of forks', async (t) => {
  add({ name: 'old', sourceBoxHostname: 'kiwi', kind: 'final' })
  const copy = add({ name: 'copy', kind: 'fork', boxId: fig.id }, true)
  const { id } = add({ name: 'new', boxId: fig.id, templateName: 'web', kind: 'template' })
  const [header = '', ...rows] = (await box('snapshots')).stdout.trimEnd().split('\n')
  t.match(header, /^NAME +BOX +KIND +STATUS +SIZE +AGE +ID$/)
  t.match(rows, [
    new RegExp(`^new +fig +template +available +1\\.40 GiB +0s +${id.slice(0, 12)}$`),
    /^old +kiwi +final +available/,
  ])
  t.equal(rows.length, 2)
  t.equal((await box('snapshots', '--all', '-q', 'fig')).stdout, `${id}\n${copy.id}\n`)
  t.match((await box('snapshots', 'kiwi')).stdout, /old/, 'of a deleted box')
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
  const { id } = add({ name: 'before', templateName: 'web' })
  const other = add({ name: 'web' })
  for (const typed of [id, id.slice(0, 12), id.slice(4, 14), 'web', 'before']) {
    t.match(await box('restore', typed, '--no-wait'), { code: 0 }, typed)
    t.ok(fake.requests.at(-1)?.line.startsWith(`POST /api/v1/snapshots/${id}/restore`), typed)
  }
  add({ name: 'before' })
  t.match(await box('restore', 'before'), {
    code: 2,
    stderr:
      /^box: 2 snapshots have the name 'before'\. Use an id:\n {2}snp_\w+ {2}fig \(deleted\) {2}\S+Z\n {2}snp_/,
  })
  t.match(await box('snapshots', 'rm', 'before'), { code: 2, stderr: /2 snapshots have the name 'before'/ })
  t.match(await box('restore', other.id.slice(0, 5)), { code: /[02]/ })
  t.match(await box('restore', 'nothing'), {
    code: 5,
    stderr: "box: No such snapshot or template: 'nothing'. Run `box snapshots` to list snapshots.\n",
  })
})

t.test('of several snapshots with the name, the one of a box that exists wins', async (t) => {
  const ofFig = add({ name: 'before', boxId: fig.id })
  add({ name: 'before' })
  for (const args of [
    ['restore', 'before'],
    ['create', 'kaki', '--from', 'before'],
    ['template', 'before', 'web'],
  ])
    t.match(await box(...args), { code: 0 }, args.join(' '))
  t.match(bodies, [{}, { name: 'web' }])
  t.ok(fake.requests.some(({ line }) => line.startsWith(`POST /api/v1/snapshots/${ofFig.id}/restore`)))
  t.equal(snapshots.find(({ templateName }) => templateName === 'web')?.id, ofFig.id)
  add({ name: 'before', boxId: fig.id })
  ofFig.templateName = null
  t.match(await box('restore', 'before'), {
    code: 2,
    stderr: /3 snapshots have the name.*fig {2}.*\(deleted\)/s,
  })
})

t.test('a name that is taken names the command that frees it', async (t) => {
  add({ name: 'before' })
  refuseNext('POST /api/v1/snapshots/', 409, 'name_taken')
  t.match(await box('restore', 'before', 'fig'), {
    code: 1,
    stderr: 'box: Refused. `box rename fig NEWNAME` frees the name. (name_taken)\n',
  })
})

t.test('restore creates a box, waits, and prints its name', async (t) => {
  add({ name: 'before', tier: 'pro' })
  t.same(await box('restore', 'before', 'kiwi'), {
    code: 0,
    stdout: 'kiwi\n',
    stderr: 'kiwi: requested\nkiwi: running\n',
  })
  t.match(await boxJson('restore', 'before', '--name', 'lychee', '--tier', 'max'), {
    hostname: 'lychee',
    tier: 'max',
  })
  t.same(bodies, [{ name: 'kiwi' }, { name: 'lychee', tier: 'max' }])
})

t.test('a tier that is too small names the option', async (t) => {
  add({ name: 'before' })
  refuseNext('POST /api/v1/snapshots/', 403, 'restore_tier_not_allowed')
  t.match(await box('restore', 'before', '--tier', 'nano'), {
    code: 1,
    stderr: 'box: Refused. Choose the tier with --tier. (restore_tier_not_allowed)\n',
  })
})

t.test('fork copies a box, and keeps the snapshot with --keep-snapshot', async (t) => {
  t.same(await box('fork', 'fig', 'date'), {
    code: 0,
    stdout: 'date\n',
    stderr: 'date: requested\ndate: running\n',
  })
  t.match(await boxJson('fork', 'fig', '--keep-snapshot', '--tier', 'pro'), {
    box: { hostname: 'lime', tier: 'pro', observedState: 'running' },
    snapshot: { kind: 'fork', sourceBoxHostname: 'fig' },
  })
  t.same(bodies, [{ name: 'date' }, { tier: 'pro', keepSnapshot: true }])
  t.match(await box('fork', 'fig', 'pear', '--keep-snapshot'), {
    stderr: /^box: the snapshot is fork-pear \(snp_/m,
  })
  t.match(await box('fork', 'none'), { code: 5, stderr: /No such box/ })
})

t.test('create --from finds the template or snapshot', async (t) => {
  const { id } = add({ templateName: 'web' })
  let body = ''
  fake.handleNext('POST /api/v1/boxes', async (response, request) => {
    for await (const chunk of request) body += chunk
    sendJson(response, { box: boxSchema.parse({ ...fig, hostname: 'papaya' }) }, 202)
  })
  t.match(await box('create', '--from', 'web', '-e', 'A=1', '--no-wait'), { code: 0, stdout: 'papaya\n' })
  t.same(JSON.parse(body), { fromSnapshotId: id, env: { A: '1' } })
  t.match(await box('create', '--from', 'none'), { code: 5, stderr: /No such snapshot or template: 'none'/ })
  t.match(await box('create', '--from', 'web', '--region', 'us-east-1'), {
    code: 2,
    stderr: /region of the snapshot/,
  })
})

t.test('template takes a snapshot of a box, or names a snapshot', async (t) => {
  t.match(await box('template', 'fig', 'web'), {
    code: 0,
    stdout: 'web\n',
    stderr: 'web: creating\nweb: available, 1.40 GiB, processes paused for 35 ms\n',
  })
  const { id } = add({ name: 'before' })
  t.match(await box('template', 'before', 'web'), {
    code: 0,
    stdout: 'web\n',
    stderr: /^web \(snp_[0-9a-f]{24}\) had this name before, and stays as a snapshot\.\n$/,
  })
  t.equal(snapshots.find(({ templateName }) => templateName === 'web')?.id, id)
  t.match(await boxJson('template', id.slice(0, 14), 'api'), {
    snapshot: { id, templateName: 'api' },
    previous: null,
  })
  t.match(await box('template', 'none', 'web'), { code: 5, stderr: /No such box or snapshot: 'none'/ })
})

t.test('a snapshot that is being taken names the command that waits for it', async (t) => {
  const { id } = add({ status: 'creating' })
  refuseNext(`POST /api/v1/snapshots/${id}/template`, 409, 'snapshot_in_progress')
  t.match(await box('template', id, 'web'), {
    code: 1,
    stderr: `box: Refused. \`box wait ${id}\` waits for it. (snapshot_in_progress)\n`,
  })
})

t.test('templates lists the templates; templates rm removes a name and keeps the snapshot', async (t) => {
  add({ name: 'plain' })
  const { id } = add({ name: 'before', templateName: 'web', kind: 'template' })
  t.match((await box('templates')).stdout, /^TEMPLATE .*\nweb .*\n$/)
  t.equal((await box('templates', '-q')).stdout, 'web\n')
  t.match(await box('templates', 'rm', 'none', 'web'), {
    code: 5,
    stdout: '',
    stderr: `box: No such template: 'none'. Run \`box templates\` to list templates.\nweb: removed; its snapshot before (${id}) stays\n`,
  })
  t.equal(snapshots.length, 2)
  t.equal((await box('templates', '-q')).stdout, '')
})

t.test('snapshots rm deletes several snapshots, tries each, and waits', async (t) => {
  add({ name: 'one' })
  add({ name: 'two', templateName: 'web' })
  t.same(await box('snapshots', 'rm', 'one', 'none', 'web'), {
    code: 5,
    stdout: '',
    stderr:
      "box: No such snapshot or template: 'none'. Run `box snapshots` to list snapshots.\none: deleted\ntwo: deleted\n",
  })
  t.equal(snapshots.length, 0)
  t.same(await box('snapshots', 'rm', '-f', 'none'), { code: 0, stdout: '', stderr: '' })
  add({ name: 'three' })
  t.match(await boxJson('snapshots', 'rm', 'three'), {
    snapshot: { name: 'three' },
    operation: { status: 'completed' },
  })
  add({ name: 'four' })
  t.match(await box('snapshots', 'rm', 'four', '--no-wait'), { code: 0, stderr: 'four: deleting\n' })
})

t.test('on a terminal, snapshots rm asks', async (t) => {
  add({ name: 'one' })
  add({ name: 'two', templateName: 'web' })
  const refused = runBoxInPty(t, fake.url, 'box snapshots rm one two; echo code=$?')
  await refused.waitFor('Delete 2 snapshots (one; two, the template web)? [y/N] ')
  refused.type('n\r')
  await refused.waitFor('nothing was deleted')
  await refused.waitFor('code=1')
  t.equal(snapshots.length, 2)
  const confirmed = runBoxInPty(t, fake.url, 'box snapshots rm one; echo code=$?')
  await confirmed.waitFor('Delete the snapshot one? [y/N] ')
  confirmed.type('y\r')
  await confirmed.waitFor('one: deleted')
  await confirmed.waitFor('code=0')
})

t.test('the words of docker and gh for two words', async (t) => {
  add({ name: 'one', templateName: 'web' })
  t.match(await box('snapshot', 'ls', '-q'), { code: 0, stdout: /^snp_/ })
  t.match(await box('template', 'list', '-q'), { code: 0, stdout: 'web\n' })
  t.match(await box('snapshot', 'create', 'fig', 'two', '-q'), { code: 0, stdout: /^snp_/ })
  t.match(await box('snapshot', 'delete', 'two'), { code: 0, stderr: 'two: deleted\n' })
  t.match(await box('template', 'rm', 'web'), { code: 0, stderr: /^web: removed/ })
  t.match(await box('help', 'snapshot', 'ls'), { code: 0, stdout: /^Usage: box snapshots/ })
})

t.test('subcommands have help, JSON errors, and their name in usage errors', async (t) => {
  t.match((await box('snapshots', 'rm', '--help')).stdout, /^Usage: box snapshots rm.*--yes.*Examples:/s)
  t.match(await box('snapshots', 'rm'), { code: 2, stderr: /missing.*\nSee 'box snapshots rm --help'\.\n/ })
  t.match(await box('snapshots', 'rm', 'none', '--json'), {
    code: 5,
    stderr: /^\{"error":\{"code":"no_such_snapshot"/,
  })
  add({ name: 'one' })
  const verbose = await box('snapshots', 'rm', 'one', '--verbose')
  t.match(verbose, { code: 0, stderr: /DELETE http.*: 202/ })
})
