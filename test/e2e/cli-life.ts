// The life of a box with the box command: copies, snapshots, templates, tiers, regions, variables, and waiting.
import { availableParallelism } from 'node:os'
import t from 'tap'
import { runBox } from '../cli/run-box.ts'
import { DEADLINE_MS } from '../support/wait-until.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

t.test('a box is copied, restored, resized, moved, stopped and deleted', async (t) => {
  const { url, key, box: first } = sharedCoordinator
  const run = async (...args: string[]) => {
    const result = await runBox(url, args, { env: { BOXWOOD_API_KEY: key } })
    t.equal(result.code, 0, `box ${args.join(' ')}: ${result.stderr}`)
    return result
  }
  const show = async (name: string) => JSON.parse((await run('show', name, '--json')).stdout)
  await run('rm', '-y', first.hostname)
  await run('create', 'fig', '-e', 'A=1', '--tier', 'micro')
  await run('exec', 'fig', '--', 'mkdir work && echo content > work/file')

  const { stdout: snapshotId } = await run('snapshot', 'fig', 'before')
  t.match((await run('snapshots', 'fig')).stdout, /^before +fig +manual +available/m)
  await run('exec', 'fig', '--', 'echo changed > work/file')
  t.equal((await run('restore', snapshotId.trim(), 'old', '--tier', 'nano')).stdout, 'old\n')
  t.equal((await run('exec', 'old', '--', 'cat work/file; echo $A')).stdout, 'content\n1\n')
  t.match(await show('old'), { box: { tier: 'nano' } })

  await run('fork', 'fig', 'plum')
  t.equal((await run('exec', 'plum', 'cat', 'work/file')).stdout, 'changed\n')
  await run('template', 'before', 'web')
  t.equal((await run('templates', '-q')).stdout, 'web\n')
  t.match(await runBox(url, ['create', '--from', 'none'], { env: { BOXWOOD_API_KEY: key } }), { code: 5 })

  t.match((await run('env', 'fig', 'B=two words', '--unset', 'A')).stderr, /1 set, 1 removed/)
  t.equal((await run('exec', 'fig', '--', 'echo $A:$B')).stdout, ':two words\n')
  t.match(
    (await run('set', 'fig', '--ttl', '2h', '--auto-snapshot', '24h')).stderr,
    /\(in 2h\); snapshot every 1d/,
  )

  const isIsolated = (await show('fig')).box.isolation.level !== 'process'
  const readHostname = async (name: string) => (await run('exec', name, 'hostname')).stdout.trim()
  t.match((await run('rename', 'fig', 'lime')).stderr, /^fig: renamed to lime/)
  t.match((await run('snapshots', 'lime')).stdout, /^before +lime /m)
  if (isIsolated) t.equal(await readHostname('lime'), 'fig')
  t.match((await run('resize', 'lime', 'flow')).stderr, /resized to flow/)
  if (isIsolated) t.equal(await readHostname('lime'), 'lime', 'from the next start on')
  await run('rename', 'lime', 'fig')

  // Larger than most machines: the box has what the machine has.
  await run('resize', 'fig', 'ultra')
  const cpus = Math.min(32, availableParallelism())
  const { size, box } = await show('fig')
  t.equal(size.cpus, cpus)
  const isLimited = box.isolation.limits.includes('cpu')
  t.equal((await run('exec', 'fig', 'nproc')).stdout, `${isLimited ? cpus : availableParallelism()}\n`)
  t.match((await run('resize', 'fig', 'nano')).stderr, /resized to nano \(1 CPU, /)
  if (isLimited) t.equal((await run('exec', 'fig', 'nproc')).stdout, '1\n')
  t.match((await run('resize', 'fig', 'lite')).stderr, /resized to lite/)
  t.match(
    (await run('move', 'fig', 'eu-central-1')).stderr,
    /moved from us-west-2 to eu-central-1, on the same disk: no files were copied\n$/,
  )
  t.match(await show('fig'), { box: { region: 'eu-central-1', tier: 'lite', observedState: 'running' } })
  t.equal((await run('exec', 'fig', 'cat', 'work/file')).stdout, 'changed\n')

  await run('suspend', 'fig', '--no-wait')
  t.match(JSON.parse((await run('wait', 'fig', '--json')).stdout), { observedState: 'suspended' })
  await run('stop', 'fig')
  t.match(await show('fig'), { box: { suspendedAs: 'stopped' } })
  t.match(
    (await run('events', 'fig')).stdout,
    /resized from nano to lite.*moved from us-west-2 to eu-central-1/s,
  )

  await run('templates', 'rm', 'web')
  await run('snapshots', 'rm', 'before')
  t.equal((await run('snapshots', '-q', '--all', '--filter', 'name=before')).stdout, '')
  await run('rm', '-y', 'fig', 'plum', 'old', '--no-wait')
  for (const name of ['fig', 'plum', 'old'])
    await run('wait', name, '--for', 'deleted', '--timeout', `${Math.ceil(DEADLINE_MS / 1000)}s`)
})
