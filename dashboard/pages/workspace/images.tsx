// The images of the engines: download one with its progress, remove one.
import { useEffect } from 'preact/hooks'
import type { Image, RegionInfo } from '../../../shared/api/images.ts'
import type { Region } from '../../../shared/tiers.ts'
import { mayRemoveImages } from '../../data/access.ts'
import { formatCommandLine } from '../../data/command-line.ts'
import { type ImagePull, summarizeLayers } from '../../data/image-pulls.ts'
import { getClient, session } from '../../data/live.ts'
import { formatBytes } from '../../data/sizes.ts'
import { getImagePulls, imagePulls } from '../../data/started-pulls.ts'
import { showHidden } from '../../data/visible-text.ts'
import { getWorkspaceClient } from '../../data/workspace-client.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { HardDriveIcon } from '../../design/icons.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { Age } from '../../views/age.tsx'
import { focusHeading } from '../../views/focus-heading.ts'
import { Freshness, useLoaded } from '../../views/loaded.tsx'
import { PageHead } from '../../views/page-head.tsx'
import { Problem } from '../../views/problem.tsx'
import { type DialogProps, useDialog } from '../../views/use-dialog.tsx'

async function load() {
  const [{ regions }, list] = await Promise.all([
    getClient().listRegions(),
    getWorkspaceClient().listImages(),
  ])
  return { regions: regions.filter(({ images }) => images), ...list }
}

export function ImagesPage() {
  const loaded = useLoaded(load)
  const dialog = useDialog()
  const { value, reload } = loaded
  const done = imagePulls.value.filter(({ state }) => state === 'done').length
  useEffect(() => {
    if (done > 0) void reload()
  }, [done])
  const mayRemove = session.value !== null && mayRemoveImages(session.value.user.role)
  return (
    <>
      <PageHead page="images" command="box images">
        {value !== null && value.regions.length > 0 && (
          <button type="button" class="primary" onClick={() => dialog.open(createPullDialog(value.regions))}>
            Pull an image
          </button>
        )}
      </PageHead>
      {value === null && loaded.error === null && <Skeleton label="Loading the images." />}
      {value !== null && value.regions.length === 0 && (
        <EmptyState icon={HardDriveIcon} title="No region has images.">
          <p>Boxes use the programs and files of the machine of the coordinator.</p>
          <p class="buttons">
            <a href="docs/guides/images">How to serve images</a>
          </p>
        </EmptyState>
      )}
      <Pulls pulls={imagePulls.value} />
      {value?.unavailable.map(({ region, message }) => (
        <p key={region} class="problem">
          The engine of {region} does not answer: {showHidden(message)}
        </p>
      ))}
      {value !== null && value.regions.length > 0 && value.images.length === 0 && (
        <EmptyState icon={HardDriveIcon} title="There is no image.">
          <p>
            An image has the programs of new boxes, such as debian:12 or node:24. A box downloads its image
            when it is created. Pull one now, and new boxes start without a download.
          </p>
        </EmptyState>
      )}
      {value !== null && value.images.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Image</th>
              <th scope="col">Region</th>
              <th scope="col">Size</th>
              <th scope="col">Built</th>
              <th scope="col">Digest</th>
              <th scope="col">Actions</th>
            </tr>
          </thead>
          <tbody>
            {value.images.map((image) => (
              <ImageRow
                key={`${image.region} ${image.reference}`}
                image={image}
                {...(mayRemove && { onRemove: () => dialog.open(createRemoveDialog(image, reload)) })}
              />
            ))}
          </tbody>
        </table>
      )}
      <Freshness loaded={loaded} />
      {dialog.view}
    </>
  )
}

const DIGEST_CHARS = 19

function ImageRow({ image, onRemove }: { image: Image; onRemove?(): void }) {
  const { reference, region, sizeBytes, createdAt, digest } = image
  return (
    <tr>
      <th scope="row">{showHidden(reference)}</th>
      <td data-label="Region">{region}</td>
      <td data-label="Size">{formatBytes(sizeBytes)}</td>
      <td data-label="Built">{createdAt === null ? '–' : <Age at={createdAt} />}</td>
      <td data-label="Digest">
        {digest === null ? 'not from a registry' : <code>{digest.slice(0, DIGEST_CHARS)}</code>}
      </td>
      <td>
        <div class="actions">
          {digest !== null && (
            <button
              type="button"
              onClick={() => getImagePulls().start({ image: reference, region })}
              aria-label={`Pull again: ${reference} in ${region}`}
            >
              Pull again
            </button>
          )}
          {onRemove && (
            <button type="button" onClick={onRemove} aria-label={`Remove ${reference} in ${region}`}>
              Remove
            </button>
          )}
        </div>
      </td>
    </tr>
  )
}

const STATES: Record<ImagePull['state'], string> = {
  running: 'is downloaded',
  done: 'has been downloaded',
  failed: 'could not be downloaded',
  canceled: 'canceled',
}

function Pulls({ pulls }: { pulls: readonly ImagePull[] }) {
  if (pulls.length === 0) return null
  return (
    <section aria-label="Downloads">
      <h2>Downloads</h2>
      <ul class="uploads">
        {pulls.map((pull) => (
          <PullItem key={pull.id} pull={pull} />
        ))}
      </ul>
      {pulls.some(({ state }) => state !== 'running') && (
        <button
          type="button"
          onClick={() => {
            getImagePulls().clear()
            focusHeading()
          }}
        >
          Clear the list
        </button>
      )}
    </section>
  )
}

function PullItem({ pull: { id, request, state, layers, error } }: { pull: ImagePull }) {
  const name = `${showHidden(request.image)}${request.region ? ` in ${request.region}` : ''}`
  const progress = state === 'running' ? summarizeLayers(layers) : null
  return (
    <li>
      {name} <span role="status">{STATES[state]}</span>{' '}
      {progress !== null && (
        <>
          <progress value={progress.value} max={progress.max} aria-label={`Progress of ${name}`} />{' '}
          <small>{progress.text}</small>{' '}
        </>
      )}
      {state === 'running' && (
        <button type="button" aria-label={`Cancel ${name}`} onClick={() => getImagePulls().cancel(id)}>
          Cancel
        </button>
      )}
      {error !== null && <Problem error={error} />}
    </li>
  )
}

const createPullDialog = (regions: readonly RegionInfo[]): DialogProps => ({
  title: 'Pull an image',
  children: <p>The engine of the region downloads it. New boxes then start without a download.</p>,
  fields: [
    { name: 'image', label: 'Image', hint: 'Such as debian:12' },
    {
      name: 'region',
      label: 'Region',
      options: regions.map(({ region, provider }) => ({ value: region, label: `${region}: ${provider}` })),
      value: (regions.find(({ isDefault }) => isDefault) ?? regions[0])?.region ?? '',
    },
  ],
  submitLabel: 'Pull',
  accepts: ({ image }) => Boolean(image?.trim()),
  formatCommand: ({ image, region }) =>
    formatCommandLine('box', 'images', 'pull', image?.trim() || 'IMAGE', '--region', region),
  async submit({ image = '', region }) {
    getImagePulls().start({ image: image.trim(), region: region as Region })
  },
})

const createRemoveDialog = (image: Image, reload: () => Promise<void>): DialogProps => ({
  title: `Remove the image ${showHidden(image.reference)}`,
  children: <p>This frees its disk space. An image that a box or a snapshot has cannot be removed.</p>,
  fields: [],
  submitLabel: 'Remove',
  formatCommand: () => formatCommandLine('box', 'images', 'rm', image.reference, '--region', image.region),
  async submit() {
    await getWorkspaceClient().removeImage(image)
    await reload()
  },
})
