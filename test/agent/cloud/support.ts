// A home directory to which cloud credentials are applied.
import { lstat, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { createCloudCredentials } from '../../../agent/cloud/credentials.ts'
import type { CloudProfile } from '../../../shared/api/cloud-credentials.ts'
import { systemClock } from '../../../shared/clock.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { silentLog } from '../../support/tunnel.ts'

export const CONFIG = '.aws/config'
export const TOKEN = '.boxwood/aws/token'

export const toToken = (content: string) => ({ content: `${content}.e30.c2ln` })

export const toProfile = (name: string): CloudProfile => ({
  name,
  roleArn: `arn:aws:iam::123456789012:role/path/${name}`,
  roleSessionName: 'boxwood-fig',
})

export function setUpHome(t: Test) {
  const home = createTempDir(t, 'cloud')
  const stateDir = join(home, '.state')
  const at = (path: string) => join(home, path)
  const { apply, remove } = createCloudCredentials({ home, stateDir, clock: systemClock, log: silentLog })
  return {
    home,
    at,
    apply,
    remove,
    /** Applies a token and profiles with these names. */
    connect: (...names: string[]) => apply({ token: toToken('a'), profiles: names.map(toProfile) }),
    disconnect: () => apply({ token: null, profiles: [] }),
    /** null: no file. */
    read: (path: string) => readFile(at(path)).then(String, () => null),
    async write(path: string, content: string | Buffer, mode = 0o644): Promise<void> {
      await mkdir(dirname(at(path)), { recursive: true })
      await writeFile(at(path), content, { mode })
    },
    modeOf: async (path: string) => ((await lstat(at(path))).mode & 0o7777).toString(8),
  }
}
