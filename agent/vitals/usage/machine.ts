// The usage of the whole machine, from /proc. For a box that is a machine of its own.
import { readFileSync } from 'node:fs'
import { TICK_MS } from '../../process-table.ts'

/** The CPU time of all processors since boot, and their number. From /proc/stat. */
export function readMachineCpu(procRoot: string): { seconds: number; cpus: number } {
  const text = readFileSync(`${procRoot}/stat`, 'latin1')
  // Fields: user nice system idle iowait irq softirq steal. Guest time is included in user time.
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = text.split(/\s+/, 9).slice(1).map(Number)
  const ticks = user + nice + system + irq + softirq
  return { seconds: (ticks * TICK_MS) / 1000, cpus: text.match(/^cpu\d/gm)?.length ?? 1 }
}

/** Memory that the kernel can reclaim without swapping (MemAvailable) does not count as used. */
export function readMachineMemory(procRoot: string): { usedBytes: number; totalBytes: number } {
  const meminfo = readFileSync(`${procRoot}/meminfo`, 'latin1')
  const bytes = (name: string) =>
    Number(new RegExp(`^${name}:\\s*(\\d+) kB`, 'm').exec(meminfo)?.[1] ?? 0) * 1024
  const totalBytes = bytes('MemTotal')
  return { usedBytes: totalBytes - bytes('MemAvailable'), totalBytes }
}

/** Over 1, 5 and 15 minutes. */
export function readLoad(procRoot: string): [number, number, number] {
  const [load1 = 0, load5 = 0, load15 = 0] = readFileSync(`${procRoot}/loadavg`, 'latin1')
    .split(' ')
    .map(Number)
  return [load1, load5, load15]
}

export type Device = { isWholeDisk: boolean; readBytes: number; writtenBytes: number }

/** /proc/diskstats counts in this unit on every device. */
const SECTOR_BYTES = 512
/** Devices on top of others: their bytes are counted there too. */
const VIRTUAL_DEVICES = /^(loop|ram|zram|dm-|md|sr|fd)/

/** Returns the devices by `major:minor`, with their bytes since boot. */
export function readDevices(procRoot: string): Map<string, Device> {
  const devices = new Map<string, Device>()
  let lastDisk = ''
  for (const line of readFileSync(`${procRoot}/diskstats`, 'latin1').split('\n')) {
    const [major, minor, name = '', , , sectorsRead, , , , sectorsWritten] = line.trim().split(/\s+/)
    if (name === '') continue
    // Partitions follow their disk: sda1 sda2, nvme0n1p1.
    const isPartition =
      lastDisk !== '' && name.startsWith(lastDisk) && /^p?\d+$/.test(name.slice(lastDisk.length))
    if (!isPartition) lastDisk = name
    devices.set(`${major}:${minor}`, {
      isWholeDisk: !isPartition && !VIRTUAL_DEVICES.test(name),
      readBytes: Number(sectorsRead) * SECTOR_BYTES,
      writtenBytes: Number(sectorsWritten) * SECTOR_BYTES,
    })
  }
  return devices
}

/** Bytes since the interface was created. */
export function readInterfaces(procRoot: string): { name: string; rxBytes: number; txBytes: number }[] {
  const lines = readFileSync(`${procRoot}/net/dev`, 'latin1').split('\n').slice(2)
  return lines.flatMap((line) => {
    const colon = line.lastIndexOf(':')
    if (colon < 0) return []
    const fields = line
      .slice(colon + 1)
      .trim()
      .split(/\s+/)
      .map(Number)
    return { name: line.slice(0, colon).trim(), rxBytes: fields[0] ?? 0, txBytes: fields[8] ?? 0 }
  })
}

export type MountedFileSystem = { mount: string; device: string }

/**
 * The file systems on devices, each at its first mount point. A bind mount is not listed again.
 * Network file systems are omitted: statfs can block on them.
 */
export function listFileSystems(procRoot: string): MountedFileSystem[] {
  const byDevice = new Map<string, MountedFileSystem>()
  for (const line of readFileSync(`${procRoot}/self/mountinfo`, 'utf8').split('\n')) {
    const [mountFields = '', fileSystem = ''] = line.split(' - ')
    const [, , device = '', root, mount = ''] = mountFields.split(' ')
    const [type = '', source = ''] = fileSystem.split(' ')
    const isOnDevice = source.startsWith('/dev/') || type === 'btrfs' || type === 'zfs'
    if (!isOnDevice || root !== '/' || READ_ONLY_TYPES.has(type) || byDevice.has(device)) continue
    byDevice.set(device, { mount: decodeOctal(mount), device })
  }
  return [...byDevice.values()]
}

/** File systems of packages, which are always full. */
const READ_ONLY_TYPES = new Set(['squashfs', 'iso9660', 'erofs'])

/** The kernel writes space, tab, newline and backslash as \ooo. */
const decodeOctal = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
