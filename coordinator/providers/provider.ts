// The interface of a provider, which creates and runs machines. Every call is idempotent per box: the reconciler
// repeats a call whose outcome it does not know.
import type { Readable } from 'node:stream'
import type { Isolation } from '../../shared/api/boxes.ts'
import type { PullProgress } from '../../shared/api/images.ts'
import type { ErrorCode } from '../../shared/errors.ts'
import type { Capacity, Region, Tier } from '../../shared/tiers.ts'
import { ExpectedError } from '../base/expected-error.ts'

export type MachineSpec = {
  boxId: string
  hostname: string
  tier: Tier
  /** The coordinator's URL for the agent to connect to, without a path. */
  coordinatorUrl: string
  /** The image of a machine that does not exist yet. null: the default of the provider. An existing machine keeps its image. */
  image: string | null
}

/** What is known of a machine after it was created or started. */
export type MachineInfo = {
  isolation: Isolation | null
  /** The content of the image, such as `sha256:…`. Absent: the provider has no images, or the call did not find out. */
  imageDigest?: string | null
  /** What a start has repaired, and what was lost, for the user of the box. */
  repair?: string
}

/** frozen: the processes exist, with their memory, and do not run. */
export type MachineState = 'absent' | 'stopped' | 'frozen' | 'running'

/**
 * The files of a machine in the archive store of a provider. `archiveId` is the id of a snapshot, or an id from
 * newId('archive'), and is never used for other content. Archives share stored data only within their workspace.
 */
export type ArchiveKey = { workspaceId: string; archiveId: string }

/**
 * files: the home and temporary directories of the box, which a new machine gets. all: the state of the agent too, which the
 * same box gets after deep sleep or in another region.
 */
export type ArchiveContents = 'files' | 'all'

/** files: directories. oci: an image of the root file system, and directories. incus: a copy in an Incus server or cluster. */
export type ArchiveFormat = 'files' | 'oci' | 'incus'

export type ArchiveInfo = {
  /** The disk space that the files occupy in a machine. */
  contentBytes: number
  /** The bytes that the archive added to the store. */
  storedBytes: number
  /** How long the processes of a running machine were paused. null: the machine was not running. */
  pausedMs: number | null
}

/** An amount of bytes or inodes of a file system. */
export type DiskSpace = { free: number; total: number }

/** The bytes that the files of a box occupy, and the number of its files and directories. */
export type DiskUsage = { bytes: number; inodes: number }

/** Inodes that no box can use before they are released. Both calls are no-ops when there is nothing to do. */
export type InodeReserve = { restore(totalInodes: number): Promise<void>; release(): Promise<void> }

/** The disk of a provider whose machines share one file system. */
export type SharedDisk = {
  /** Providers with the same file system share its space. */
  readonly fileSystem: string
  /**
   * null: the usage is not known, because the engine does not answer. Throws MeasurementTimeoutError when the files of the box could
   * not be counted in time.
   */
  measure(boxId: string, signal: AbortSignal): Promise<DiskUsage | null>
  readonly inodeReserve?: InodeReserve
  /** inodes: null where the file system has no fixed number of them. */
  readSpace(): Promise<{ bytes: DiskSpace; inodes: DiskSpace | null }>
}

/** An image that new machines can use without a download. */
export type ImageInfo = {
  /** The name under which requests use the image. */
  reference: string
  /** `sha256:…` of the content in its registry; null: it comes from no registry. */
  digest: string | null
  sizeBytes: number
  /** Epoch milliseconds; null: not known. */
  createdAt: number | null
}

/** The images of a provider whose machines have a root file system of their own. */
export interface ProviderImages {
  /** The image of a box that is created without one. */
  readonly defaultImage: string
  /** Returns the rule that the reference breaks, as the rest of a sentence that begins with `image`; null: it is valid. */
  findProblem(reference: string): string | null
  /** The name in full, which is the same for all references to the image. Absent: the references differ. */
  normalize?(reference: string): string
  list(signal?: AbortSignal): Promise<ImageInfo[]>
  /** Whether new machines can use the image without a download. */
  has(reference: string, signal?: AbortSignal): Promise<boolean>
  /**
   * Downloads the image, also when an older one has the reference. Concurrent pulls of a reference share one download, which ends
   * when the last caller has aborted. Throws ImageError.
   */
  pull(
    reference: string,
    onProgress?: (progress: PullProgress) => void,
    signal?: AbortSignal,
  ): Promise<ImageInfo>
  /** Returns false when there is no such image. Throws ImageError image_in_use and image_not_downloaded. */
  remove(reference: string): Promise<boolean>
}

/**
 * Machines that are started before a box needs them. Such a machine has no token, so that its agent cannot connect, and it has run no
 * command. create() with its id replaces it when anything has changed it, and start() makes it the machine of the box. destroy()
 * removes it.
 */
export type ProviderWarmMachines = {
  /** Why create() cannot work here; null: it can. */
  readonly problem: string | null
  /**
   * Starts a machine of the default image with the id of a box that does not exist yet. Resolves when its agent waits. A call that
   * fails may leave a machine.
   */
  create(boxId: string, coordinatorUrl: string, signal: AbortSignal): Promise<void>
}

export interface Provider {
  readonly name: string
  /** Archives can be copied only between providers with the same format. Absent: files. */
  readonly archiveFormat?: ArchiveFormat
  /** Whether the user of a box is root. Absent: no. */
  readonly hasRoot?: boolean
  /** Whether freeze() works. Absent: not known before it is called. */
  readonly canFreeze?: boolean
  /** Absent: all boxes use the programs of the machine on which they run. */
  readonly images?: ProviderImages
  /** The version with which machines start their agents. Absent: unknown. */
  readonly agentVersion?: string
  /** The machine on which all boxes run. Absent: each box has a machine of its tier's size. */
  readonly capacity?: Capacity | undefined
  /** Absent: each machine has a disk of its tier's size. */
  readonly sharedDisk?: SharedDisk
  /** Absent: every machine is started for its box. */
  readonly warm?: ProviderWarmMachines
  /** The isolation between boxes, for the startup banner. */
  describe(): string
  /**
   * Creates a stopped machine, with the files of the archive if there is one. No-op when the machine exists. A machine whose
   * creation was interrupted does not exist. Throws ArchiveError when the archive is missing or damaged.
   */
  create(spec: MachineSpec & { source?: ArchiveKey | undefined }, signal?: AbortSignal): Promise<MachineInfo>
  /**
   * Starts the machine and its agent, which connects with this token. A running machine continues to run: its agent uses
   * the token at its next connection. A frozen machine continues where it was frozen.
   */
  start(spec: MachineSpec & { agentToken: string }): Promise<MachineInfo>
  /**
   * Applies the limits of the tier to the running machine, whose processes continue. Returns false, with no effect, where the
   * machine must be restarted. Absent: it must. Every start applies the tier.
   */
  resize?(spec: MachineSpec): Promise<boolean>
  /** Terminates every process of the machine (SIGTERM, grace period, SIGKILL). Keeps its files. No-op when stopped. */
  stop(boxId: string): Promise<void>
  /** Terminates every process and removes all files. No-op when absent. */
  destroy(boxId: string): Promise<void>
  inspect(boxId: string): Promise<MachineState>
  /**
   * Yields the segments of the spool that the agent of a stopped machine has left, oldest first. The box controls their number
   * and content; their size is limited. Absent: the coordinator cannot read the files of the machine.
   */
  readSpool?(boxId: string): AsyncIterable<Buffer>
  /**
   * Takes the stopped machine of a provider over without a copy: afterwards this provider has the machine, and `source` has
   * none. Returns false, with no effect, where the files must be copied. Returns true when an interrupted call has done it.
   * Absent: the files must be copied.
   */
  takeOver?(boxId: string, source: { provider: Provider; region: Region }): Promise<boolean>
  /**
   * Freezes the processes of a running machine: they keep their memory and do not run. Returns false, with no effect, where
   * freezing is not possible.
   */
  freeze(boxId: string): Promise<boolean>
  /**
   * Stores the files of the machine. The processes of a running machine are paused meanwhile. Returns the information of a
   * complete archive that exists. An interrupted capture leaves nothing, at the latest after the next start.
   * @param onCopied for the contents `files`: called where the provider has copied the files before it stores them. From then on,
   *   create() can use the archive, and a repeated capture stores the same files. removeArchive() removes the copy.
   */
  capture(
    boxId: string,
    archive: ArchiveKey,
    contents: ArchiveContents,
    signal?: AbortSignal,
    onCopied?: (info: ArchiveInfo) => Promise<void>,
  ): Promise<ArchiveInfo>
  /**
   * Copies the files of the machine, as capture() does, for one new machine only: the create() with this archive as its source
   * takes the copy over. removeArchive() removes a copy that was not used. Absent: capture() stores the files.
   * @param newBoxId the box of that machine; null: it has been deleted
   */
  copyMachine?(
    boxId: string,
    archive: ArchiveKey,
    newBoxId: string | null,
    signal?: AbortSignal,
  ): Promise<ArchiveInfo>
  /** Copies the files of an archive with the contents `all`, as copyMachine() does. Absent: copyFiles() stores the files. */
  copyArchive?(
    source: ArchiveKey,
    archive: ArchiveKey,
    newBoxId: string | null,
    signal?: AbortSignal,
  ): Promise<ArchiveInfo>
  /**
   * Stores the files of an archive with the contents `all` as an archive with the contents `files`, of the same workspace. Returns
   * the information of a complete archive that exists.
   */
  copyFiles(source: ArchiveKey, archive: ArchiveKey, signal?: AbortSignal): Promise<ArchiveInfo>
  /** Removes the archive, and stored data that no other archive uses. No-op when absent. */
  removeArchive(archive: ArchiveKey): Promise<void>
  /** Removes everything that is stored for the workspace, when none of its machines exists. No-op when absent. */
  removeArchives(workspaceId: string): Promise<void>
  /** Returns the archive as a tar stream, which fails with ArchiveError when the archive is missing or damaged. */
  readArchive(archive: ArchiveKey): Readable
  /** Stores an archive that readArchive() of another provider returned. Returns the information of an archive that exists. */
  writeArchive(archive: ArchiveKey, content: Readable, signal?: AbortSignal): Promise<ArchiveInfo>
  /** Prevents the removal of stored data until the release. Absent: the archives are not on the coordinator's machine. */
  holdArchives?(): Promise<ArchiveHold>
  close(): Promise<void>
}

/** `dir` is the archive store, with a directory per workspace. Archives that are removed meanwhile remain readable. */
export type ArchiveHold = { readonly dir: string; release(): void }

/** A failure that a retry cannot fix: a create job ends in provision_failed immediately. */
export class PermanentProviderError extends ExpectedError {
  override name = 'PermanentProviderError'
}

/**
 * The provider cannot be reached, or the connection to it broke during the call. Jobs wait until it can be reached again: the
 * failure does not count as an attempt. The call is repeated.
 */
export class ProviderUnavailableError extends ExpectedError {
  override name = 'ProviderUnavailableError'
}

/** The files of a box could not be counted in time: the box has very many of them, or the disk is slow. */
export class MeasurementTimeoutError extends ExpectedError {
  override name = 'MeasurementTimeoutError'
}

/** An image cannot be used. A failure that a retry may fix, such as a lost connection to the registry, is another error. */
export class ImageError extends PermanentProviderError {
  override name = 'ImageError'
  readonly code: Extract<
    ErrorCode,
    'image_not_found' | 'image_pull_failed' | 'image_in_use' | 'image_not_downloaded' | 'image_unusable'
  >

  constructor(code: ImageError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** An archive is missing or damaged. */
export class ArchiveError extends PermanentProviderError {
  override name = 'ArchiveError'
}
