// Probes of the isolation: an answer is an exit status, and nothing else.
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { chooseLevel, DEFINE_FAIL } from '../../../../coordinator/providers/local/levels/choose-level.ts'
import { runProbe } from '../../../../coordinator/providers/parts/run-probe.ts'
import { buildRuntime } from '../../../../coordinator/providers/parts/runtime.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createDataDir, projectRoot } from '../local/support.ts'

const options = { description: 'The probe of a test', onSlow: () => undefined }

t.test('returns why a part does not work', async (t) => {
  t.equal(await runProbe(['true'], options), null)
  t.equal(await runProbe(['sh', '-c', 'echo first >&2; echo last >&2; exit 1'], options), 'last')
  t.equal(await runProbe(['sh', '-c', 'exit 3'], options), 'sh exited with code 3')
  t.equal(await runProbe(['boxwood-none'], options), 'boxwood-none is not installed')
})

t.test('waits for a probe that takes long, and says so', async (t) => {
  const fifo = join(createTempDir(t, 'probe'), 'fifo')
  execFileSync('mkfifo', [fifo])
  const messages: string[] = []
  const onSlow = (message: string) => void messages.push(message)
  let isSettled = false
  const result = runProbe(['cat', fifo], { ...options, onSlow, slowMs: 20 }).finally(() => {
    isSettled = true
  })
  await waitUntil('the probe is called slow five times', () => messages.length >= 5)
  t.notOk(isSettled)
  t.match(messages[0], /^The probe of a test has been running for \d+ s on this busy machine$/)
  writeFileSync(fifo, '')
  t.equal(await result, null)
})

t.test('a probe that is killed is repeated, and is no answer', async (t) => {
  const attempts = join(createTempDir(t, 'probe'), 'attempts')
  const killedBy = (signal: string) => `echo >>'${attempts}'; kill -${signal} $$`
  await t.rejects(runProbe(['sh', '-c', killedBy('KILL')], options), {
    name: 'InconclusiveProbeError',
    message: /^The probe of a test was killed 3 times/,
  })
  t.equal(readFileSync(attempts, 'utf8'), '\n\n\n')
  await t.rejects(runProbe(['sh', '-c', killedBy('TERM')], options), { name: 'InconclusiveProbeError' })
  t.equal(
    await runProbe(['sh', '-c', `[ -e '${attempts}.2' ] || { touch '${attempts}.2'; kill -9 $$; }`], options),
    null,
    'the second attempt works',
  )
})

t.test('a probe whose first process is killed ends, while others wait', async (t) => {
  const pids = join(createTempDir(t, 'probe'), 'pids')
  await t.rejects(runProbe(['sh', '-c', `sleep 600 & echo $! >>'${pids}'; kill -9 $$`], options), {
    name: 'InconclusiveProbeError',
  })
  const isRunning = (pid: string) => existsSync(`/proc/${pid}/exe`)
  await waitUntil(
    'the others have exited',
    () => !readFileSync(pids, 'utf8').trim().split('\n').some(isRunning),
  )
  t.equal(readFileSync(pids, 'utf8').trim().split('\n').length, 3)
})

t.test('a probe that fails is repeated, and fails when it never succeeds', async (t) => {
  const dir = createTempDir(t, 'probe')
  // When a program of the check is killed, the check fails with an exit status and a message of its own.
  const failOnce = (name: string, failure: string) =>
    runProbe(['sh', '-c', `[ -e '${dir}/${name}' ] || { touch '${dir}/${name}'; ${failure}; }`], options)
  t.equal(await failOnce('failed', 'echo node does not run >&2; exit 1'), null, 'the second attempt works')
  const killedFirst = `[ -e '${dir}/killed' ] || { touch '${dir}/killed'; kill -9 $$; }; exit 1`
  await t.rejects(runProbe(['sh', '-c', killedFirst], options), {
    name: 'InconclusiveProbeError',
    message: /^The probe of a test was killed once/,
  })
  const fail = `${DEFINE_FAIL}; sh -c 'kill -9 $$' || fail 'a program does not run'`
  await t.rejects(runProbe(['sh', '-c', fail], options), /was killed 3 times/)
})

t.test('a probe that uses too much processor time is no answer', async (t) => {
  const busy = ['sh', '-c', 'while :; do :; done']
  await t.rejects(runProbe(busy, { ...options, maxCpuSeconds: 1 }), { name: 'InconclusiveProbeError' })
})

t.test('the choice of the level waits for a probe', async (t) => {
  const dataDir = await createDataDir(t)
  const node = join(dataDir, 'slow-node')
  // Earlier versions stopped a probe after 5 s, and chose a weaker level.
  writeFileSync(node, `#!/bin/sh\nsleep 6\nexec '${process.execPath}' "$@"\n`)
  chmodSync(node, 0o755)
  const choice = await chooseLevel(['process'], {
    boxesDir: dataDir,
    dataDir,
    projectRoot,
    runtimeDir: await buildRuntime(projectRoot, dataDir),
    nodePath: node,
    network: 'host',
    onSlow: () => undefined,
  })
  t.match(choice, { level: 'process', unavailable: [] })
})
