// How far a backup is. The coordinator sends it on the backup socket to the command.
import { z } from 'zod'

/** In this order. A phase without work is omitted. */
const PHASES = ['database', 'boxes', 'archives', 'file'] as const

export const backupProgress = z.object({
  phase: z.enum(PHASES),
  /** In `boxes`: the boxes whose files are read. In `file`: the bytes that are written. */
  done: z.int().nonnegative(),
  /** 0: not known. */
  total: z.int().nonnegative(),
})
export type BackupProgress = z.infer<typeof backupProgress>
export type OnProgress = (progress: BackupProgress) => void
