// Concurrent calls for the same thing share one download, which ends when the last of them has aborted.
import { unlessAborted } from '../base/unless-aborted.ts'

type Download<Result, Progress> = {
  result: Promise<Result>
  aborting: AbortController
  listeners: Set<(progress: Progress) => void>
  waiting: number
  progress: Progress | undefined
}

export type StartDownload<Result, Progress> = (
  onProgress: (progress: Progress) => void,
  signal: AbortSignal,
) => Promise<Result>

export class SharedDownloads<Result, Progress> {
  readonly #running = new Map<string, Download<Result, Progress>>()

  /** Rejects with the reason of the signal at once. `start` is called when no download with the key runs. */
  async join(
    key: string,
    start: StartDownload<Result, Progress>,
    onProgress: (progress: Progress) => void = () => {},
    signal: AbortSignal = new AbortController().signal,
  ): Promise<Result> {
    signal.throwIfAborted()
    const download = this.#running.get(key) ?? this.#begin(key, start)
    // A listener may be passed by several calls.
    const listener = (progress: Progress) => onProgress(progress)
    download.listeners.add(listener)
    if (download.progress !== undefined) listener(download.progress)
    download.waiting++
    try {
      return await unlessAborted(download.result, signal)
    } finally {
      download.listeners.delete(listener)
      download.waiting--
      if (download.waiting === 0) this.#end(key, download)
    }
  }

  #begin(key: string, start: StartDownload<Result, Progress>): Download<Result, Progress> {
    const aborting = new AbortController()
    const listeners: Download<Result, Progress>['listeners'] = new Set()
    const onProgress = (progress: Progress) => {
      download.progress = progress
      for (const listener of listeners) listener(progress)
    }
    const download: Download<Result, Progress> = {
      aborting,
      listeners,
      waiting: 0,
      progress: undefined,
      result: Promise.resolve().then(() => start(onProgress, aborting.signal)),
    }
    this.#running.set(key, download)
    download.result.catch(() => {}).finally(() => this.#forget(key, download))
    return download
  }

  #end(key: string, download: Download<Result, Progress>): void {
    this.#forget(key, download)
    download.aborting.abort(new Error('No request waits for the download any more.'))
  }

  /** A later call starts another download. */
  #forget(key: string, download: Download<Result, Progress>): void {
    if (this.#running.get(key) === download) this.#running.delete(key)
  }
}
