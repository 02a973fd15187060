// Files that a box can change cannot keep the box from starting, and are read up to a limit.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { launchBox } from '../../../../coordinator/providers/local/launch.ts'
import { boxPaths } from '../../../../coordinator/providers/local/machine-file.ts'
import {
  NotRegularFileError,
  readEnd,
  readStart,
} from '../../../../coordinator/providers/local/read-bounded.ts'
import {
  hasEnvironmentEntry,
  MAX_PROC_FILE_BYTES,
  readArgv,
} from '../../../../coordinator/providers/parts/proc.ts'
import { newUuid } from '../../../../shared/ids.ts'
import { testEachLevel } from './each-level.ts'
import { createDataDir, openProvider, startBox, waitForFileText } from './support.ts'

const script = `for name in url token; do
  rm -f "$BOXWOOD_STATE/$name"; mkdir -p "$BOXWOOD_STATE/$name/inner"
done
echo yes >"$HOME/ready"`

testEachLevel('starts a box that replaced its URL and token by directories', async (test, level) => {
  const { provider, spec, dataDir, paths, inHome } = await startBox(test, { level, script })
  await waitForFileText(inHome('ready'))
  const warnings: object[] = []
  const log = { debug: () => {}, info: () => {}, warn: (fields: object) => void warnings.push(fields) }
  const coordinatorUrl = 'http://127.0.0.1:10'
  const next = await openProvider(dataDir, { level, log, coordinatorUrl })
  test.teardown(() => next.close())
  test.same(warnings, [])
  test.equal(readFileSync(join(paths.state, 'url'), 'utf8'), coordinatorUrl, 'of a running box')

  await provider.stop(spec.boxId)
  await next.start({ ...spec, coordinatorUrl, agentToken: 'bxt_second' })
  test.equal(await next.inspect(spec.boxId), 'running')
  test.equal(readFileSync(join(paths.state, 'token'), 'utf8'), 'bxt_second')
  test.match(statSync(join(paths.state, 'token')), { mode: 0o100600, uid: statSync(paths.home).uid })
})

t.test('quotes the end of a large log when the start of a box fails', async (test) => {
  const paths = boxPaths(await createDataDir(test), newUuid())
  mkdirSync(paths.dir)
  const failing = `truncate -s 3G ${paths.log}; echo final output; exit 1`
  const input = { paths, cgroups: [], command: ['/bin/sh', '-c', failing], env: { PATH: '/usr/bin:/bin' } }
  await test.rejects(launchBox({ ...input, initScript: '/nonexistent' }), {
    message: /exited immediately\. .* Final output: \0*final output$/,
  })
})

t.test('reads a limited part of the arguments and the environment of a process', async (test) => {
  const values = Array.from({ length: 10 }, () => 'x'.repeat(100_000))
  const child = spawn('/bin/sh', ['-c', 'read line', 'sh', ...values], {
    env: { FIRST: 'yes', LAST: values[0] },
  })
  test.teardown(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  const { pid = 0 } = child
  test.equal(readArgv(pid)[0], '/bin/sh')
  test.ok(readArgv(pid).join('\0').length <= MAX_PROC_FILE_BYTES)
  test.ok(hasEnvironmentEntry(pid, 'FIRST=yes'))
})

t.test('reads regular files only, and not more than the limit', async (test) => {
  const dir = await createDataDir(test)
  const inDir = (name: string) => join(dir, name)
  writeFileSync(inDir('file'), '0123456789')
  test.equal(readStart(inDir('file'), 4).toString(), '0123')
  test.equal(readStart(inDir('file'), 40).toString(), '0123456789')
  test.equal(readEnd(inDir('file'), 4, 0).toString(), '6789')
  test.equal(readEnd(inDir('file'), 4, 8).toString(), '89')
  test.equal(readEnd(inDir('file'), 4, 80).toString(), '', 'the file was truncated')
  symlinkSync(inDir('file'), inDir('symlink'))
  mkdirSync(inDir('directory'))
  test.equal(spawnSync('mkfifo', [inDir('fifo')]).status, 0)
  for (const name of ['symlink', 'directory', 'fifo'])
    test.throws(() => readStart(inDir(name), 10), NotRegularFileError, name)
  test.throws(() => readStart(inDir('missing'), 10), { code: 'ENOENT' })
})
