// Shell scripts in place of the programs of a desktop: they start and wait as those do, without a screen.
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Desktop } from '../../../agent/desktop/desktop.ts'
import { createEnvironmentFactory } from '../../../agent/exec/environment.ts'
import {
  hasAssignment,
  listPids,
  PROCESS_ID_VARIABLE,
  readProcessEnvironment,
} from '../../../agent/process-table.ts'
import { systemClock } from '../../../shared/clock.ts'
import { createTempDir } from '../../support/temp-dir.ts'

const WAIT = 'exec /bin/sleep 1000'
const PROXY = 'http://proxy'

export const FAKE_PROGRAMS = {
  Xvfb: `echo 'ready' >&2; echo 42 >&3; exec 3>&-; ${WAIT}`,
  x11vnc: WAIT,
  // The child leaves the session of its parent.
  openbox: `/usr/bin/setsid /bin/sleep 1000 & ${WAIT}`,
  xterm: WAIT,
  chromium: `
for arg; do case $arg in --user-data-dir=*) profile=\${arg#*=};; esac; done
echo "$@" >"$profile/arguments"
/usr/bin/setsid /bin/sleep 1000 &
/bin/ln -s host-$$ "$profile/SingletonLock" || exit 3
echo "$TMPDIR" >"$profile/temp-dir"
/bin/ln -s "$TMPDIR/socket" "$profile/SingletonSocket" || exit 3
${WAIT}`,
} as const
export type FakeProgram = keyof typeof FAKE_PROGRAMS

/** @param scripts the content of further or changed programs; null: not installed */
export function createFakeDesktop(t: Test, scripts: Partial<Record<FakeProgram, string | null>> = {}) {
  const root = createTempDir(t, 'desktop')
  const bin = join(root, 'bin')
  const home = join(root, 'home')
  const dir = join(root, 'state')
  mkdirSync(bin)
  mkdirSync(home)
  const install = (name: string, script: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  for (const [name, script] of Object.entries({ ...FAKE_PROGRAMS, ...scripts }))
    if (script !== null) install(name, script)
  const marker = `BOXWOOD_TEST=${root}`
  const baseEnv = { HOME: home, PATH: bin, BOXWOOD_TEST: root }
  const createEnv = createEnvironmentFactory(baseEnv, () => ({ HTTPS_PROXY: PROXY }))
  const createBrowserEnv = createEnvironmentFactory(baseEnv)
  const log = { error: (...args: unknown[]) => t.fail('unexpected error', { args }) }
  const open = (bootId = 'boot') =>
    Desktop.open({ dir, home, createEnv, createBrowserEnv, bootId, clock: systemClock, log })
  t.teardown(async () => (await open()).stop('desktop'))
  return {
    ...{ bin, home, dir, install, open },
    readRecord: () => JSON.parse(readFileSync(join(dir, 'session.json'), 'utf8')),
    /** The names and the ids of the trees of all processes that the desktop has started, also of an earlier instance. */
    listProcesses: () =>
      listPids()
        .map((pid) => ({ pid, environment: readProcessEnvironment(pid) }))
        .filter(({ environment }) => hasAssignment(environment, marker))
        .map(({ pid, environment = '' }) => ({
          pid,
          usesProxy: hasAssignment(environment, `HTTPS_PROXY=${PROXY}`),
          processId: new RegExp(`${PROCESS_ID_VARIABLE}=([^\\0]*)`).exec(environment)?.[1],
        })),
  }
}
