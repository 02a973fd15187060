// Creates the metric that shows whether the disk of the coordinator is full.
import type { DiskReserve } from '../../db/disk-reserve.ts'
import type { Metric } from '../../http/module.ts'

export const createDiskMetric = (diskReserve: Pick<DiskReserve, 'isReleased'>): Metric => ({
  type: 'gauge',
  name: 'boxwood_disk_reserve_released',
  help: '1: the disk of the coordinator is full, the reserved space is released, and commands are not recorded.',
  collect: () => new Map([['', Number(diskReserve.isReleased)]]),
})
