// The probe cgroups: those of a coordinator that was killed do not remain.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { probeCgroups } from '../../../../coordinator/providers/local/cgroups.ts'

const { hierarchies } = await probeCgroups()
const [hierarchy] = hierarchies

t.test(
  'removes the probe cgroups of coordinators that have exited',
  { skip: hierarchy === undefined && 'this user has no cgroups' },
  async (t) => {
    const { parent } = hierarchy as (typeof hierarchies)[number]
    const namespace = readlinkSync('/proc/self/ns/pid').replace(/\D/g, '')
    const create = (pid: number) => {
      const dir = join(parent, `boxwood-probe-${namespace}-${pid}-cgroups-test`)
      mkdirSync(dir)
      t.teardown(() => spawnSync('rmdir', [dir]))
      return dir
    }
    const left = create(spawnSync('true').pid)
    const used = create(process.ppid)
    await probeCgroups()
    t.notOk(existsSync(left))
    t.ok(existsSync(used), 'the coordinator of another probe runs')
  },
)
