// The programs of the machine that launchers, probes and boxes use.
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'

/**
 * The PATH of boxes, of their launchers and of probes. A launcher may run as root: never add a directory that a box can
 * write to.
 */
export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export const isInstalled = (name: string): boolean =>
  SYSTEM_PATH.split(':').some((dir) => {
    try {
      accessSync(join(dir, name), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
