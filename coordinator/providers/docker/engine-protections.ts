// What an engine protected its boxes with before: an engine that protects them less is refused until the operator accepts it.

import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { z } from 'zod'
import { PermanentProviderError } from '../provider.ts'
import { readRecordFile, writeRecordFile } from '../record-file.ts'
import type { EngineInfo } from './engine-info.ts'

const NAMES = {
  cpu: 'limit of CPUs',
  memory: 'limit of memory',
  pids: 'limit of processes',
  seccomp: 'filter of system calls (seccomp)',
  user_ids: 'user of the machine that is not root (rootless or userns-remap)',
} as const

type Protection = keyof typeof NAMES

const engineRecord = z.object({
  /** The URL of the engine, such as unix:///var/run/docker.sock. */
  address: z.string(),
  protections: z.array(z.enum(Object.keys(NAMES) as [Protection, ...Protection[]])),
})
type EngineRecord = z.infer<typeof engineRecord>

export type EngineProtectionsOptions = {
  /** The file of the record. */
  file: string
  /** The operator accepts an engine with fewer protections. */
  isAccepted: boolean
}

export class EngineProtections {
  readonly #options: EngineProtectionsOptions
  #stored: EngineRecord | null

  /** Throws PermanentProviderError when the record is damaged. */
  constructor(options: EngineProtectionsOptions) {
    this.#options = options
    this.#stored = readRecordFile(options.file, engineRecord, 'the protections that the engine has now')
  }

  /** The URL of the engine that has the boxes of this data directory; null: none has answered yet. */
  get address(): string | null {
    return this.#stored?.address ?? null
  }

  /** Records what the engine has. Throws PermanentProviderError when it has less than before. */
  async update(engineName: string, address: string, info: EngineInfo): Promise<void> {
    const protections = listProtections(info)
    const missing = (this.#stored?.protections ?? []).filter((name) => !protections.includes(name))
    if (missing.length > 0 && !this.#options.isAccepted)
      throw new PermanentProviderError(
        `${engineName} protects its boxes less than before: it has no ${missing.map((name) => NAMES[name]).join(', no ')}. Restore it in the engine, or accept this with BOXWOOD_PROTECTIONS=any, and restart the coordinator.`,
      )
    const current = { address, protections }
    if (JSON.stringify(current) === JSON.stringify(this.#stored)) return
    const { file } = this.#options
    await mkdir(dirname(file), { recursive: true })
    await writeRecordFile(file, current)
    this.#stored = current
  }
}

function listProtections({ limits, hasSeccomp, hasUserNamespaces }: EngineInfo): Protection[] {
  return [
    ...limits,
    ...(hasSeccomp ? (['seccomp'] as const) : []),
    ...(hasUserNamespaces ? (['user_ids'] as const) : []),
  ]
}
