// Uploads files to a box, one after the other. A file that exists is replaced only on request.
import { type BoxwoodError, createError } from '../../client/http/errors.ts'
import { toBoxwoodError } from '../api/errors.ts'
import type { UploadOptions } from '../api/files.ts'

/** `transferBytes` of shared/limits.ts. */
export const MAX_UPLOAD_BYTES = 1024 ** 3

export type Upload = {
  readonly id: number
  /** The path on the box. */
  readonly path: string
  readonly size: number
  /** exists: waits for the decision whether to replace the file. */
  readonly state: 'waiting' | 'sending' | 'exists' | 'done' | 'failed' | 'canceled'
  readonly sent: number
  readonly error: BoxwoodError | null
}

export type NewUpload<Content> = { path: string; size: number; content: Content }

export type UploadsOptions<Content> = {
  upload(path: string, content: Content, options: UploadOptions): Promise<unknown>
  exists(path: string): Promise<boolean>
  /** Creates the directory with its parents. */
  makeDirectory(path: string): Promise<unknown>
  wait(ms: number): Promise<void>
  onChange(uploads: readonly Upload[]): void
}

export type Uploads<Content> = {
  /** @param directories that are created before the files, where they are missing */
  add(files: readonly NewUpload<Content>[], directories: readonly string[]): void
  /** Replaces a file that exists, or repeats an upload that has failed. */
  retry(id: number): void
  cancel(id: number): void
  /** Removes the uploads that have ended from the list. */
  clear(): void
}

/** A box accepts 20 requests per second. */
const RATE_LIMIT_MS = 1000
const RATE_LIMIT_ATTEMPTS = 10

export const isActive = ({ state }: Upload): boolean => state === 'waiting' || state === 'sending'

export function createUploads<Content>(options: UploadsOptions<Content>): Uploads<Content> {
  const { upload, exists, makeDirectory, wait, onChange } = options
  type Job = { replaces: boolean; content: Content; controller: AbortController }
  const jobs = new Map<number, Job>()
  const missing = new Set<string>()
  let list: Upload[] = []
  let lastId = 0
  let isRunning = false

  function change(id: number, fields: Partial<Upload>): void {
    list = list.map((item) => (item.id === id ? { ...item, ...fields } : item))
    onChange(list)
  }

  async function uploadWithinRate(...args: Parameters<typeof upload>): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await upload(...args)
        return
      } catch (error) {
        if (toBoxwoodError(error).code !== 'rate_limited' || attempt === RATE_LIMIT_ATTEMPTS) throw error
        await wait(RATE_LIMIT_MS)
      }
    }
  }

  async function createDirectories(): Promise<void> {
    for (const path of missing) {
      await makeDirectory(path)
      missing.delete(path)
    }
  }

  async function send({ id, path }: Upload, { replaces, content, controller }: Job): Promise<void> {
    const { signal } = controller
    try {
      await createDirectories()
      if (!replaces && (await exists(path))) {
        if (!signal.aborted) change(id, { state: 'exists' })
        return
      }
      const onProgress = (sent: number) => {
        if (!signal.aborted) change(id, { sent })
      }
      await uploadWithinRate(path, content, { signal, onProgress })
      jobs.delete(id)
      change(id, { state: 'done' })
    } catch (error) {
      if (!signal.aborted) change(id, { state: 'failed', error: toBoxwoodError(error) })
    }
  }

  async function run(): Promise<void> {
    if (isRunning) return
    isRunning = true
    for (;;) {
      const next = list.find(({ state }) => state === 'waiting')
      const job = next && jobs.get(next.id)
      if (next === undefined || job === undefined) break
      change(next.id, { state: 'sending', sent: 0, error: null })
      await send(next, job)
    }
    isRunning = false
  }

  return {
    add(files, directories) {
      for (const path of directories) missing.add(path)
      for (const { path, size, content } of files) {
        lastId += 1
        const isTooLarge = size > MAX_UPLOAD_BYTES
        const error = isTooLarge
          ? createError({
              code: 'payload_too_large',
              message: 'The file is larger than 1 GiB. Split it.',
              status: 0,
            })
          : null
        if (!isTooLarge) jobs.set(lastId, { replaces: false, content, controller: new AbortController() })
        list = [...list, { id: lastId, path, size, state: isTooLarge ? 'failed' : 'waiting', sent: 0, error }]
      }
      onChange(list)
      void run()
    },
    retry(id) {
      const job = jobs.get(id)
      const item = list.find((other) => other.id === id)
      if (job === undefined || item === undefined || isActive(item)) return
      job.replaces ||= item.state === 'exists'
      change(id, { state: 'waiting' })
      void run()
    },
    cancel(id) {
      jobs.get(id)?.controller.abort(new Error('The upload was canceled.'))
      jobs.delete(id)
      change(id, { state: 'canceled' })
    },
    clear() {
      for (const item of list) if (!isActive(item)) jobs.delete(item.id)
      list = list.filter(isActive)
      onChange(list)
    },
  }
}
