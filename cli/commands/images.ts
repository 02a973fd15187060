// box images: lists, downloads and removes the images of boxes.
import type { Command } from 'commander'
import { createJsonOption, createQuietOption } from '../arguments/options.ts'
import type { RunAction } from '../connection/session.ts'
import type { Output, RegionOption } from '../images/change-images.ts'
import { IMAGES } from '../images/image-list.ts'
import { loadImageRows } from '../images/load-images.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'

const importChanges = () => import('../images/change-images.ts')

export function addImagesCommand(program: Command, runAction: RunAction): void {
  const images = program
    .command('images')
    .summary('list, download or remove images')
    .description(
      'Lists the images that new boxes use without a download, in all regions with images. A box with an image has a root file system of its ' +
        'own, in which its user is root. SIZE is the disk space of all its layers; layers that images share are stored once.',
    )
    .option('--region <region>', 'only the images of this region')
    // An option after a subcommand belongs to the subcommand.
    .enablePositionalOptions()
    .helpCommand(false)
  addListOptions(images, 'the names', IMAGES.filters)
    .addHelpText(
      'after',
      `
Examples:
  box images
  box images pull python:3.13
  box create --image python:3.13               downloads a missing image too
  box images rm python:3.13
  box images -o wide --filter image=debian     with the whole digests

\`box regions\` lists which regions have images, and \`box docs images\` what a box with one can do.`,
    )
    .action((options: ListOptions & RegionOption) =>
      runAction(({ client, signal }) =>
        printList(IMAGES, () => loadImageRows(client, options.region), options, signal),
      ),
    )
  addPull(images, runAction)
  addRm(images, runAction)
}

const addOutput = (command: Command): Command =>
  command
    .option('--region <region>', 'default: the default region, or the first one with images')
    .addOption(createQuietOption())
    .addOption(createJsonOption())

function addPull(images: Command, runAction: RunAction): void {
  const pull = images
    .command('pull')
    .alias('add')
    .summary('download an image')
    .description(
      'Downloads an image from its registry, also when an older one has the name. Boxes that exist keep theirs. Shows the progress of the ' +
        'layers on stderr.',
    )
    .argument('<image>', 'such as debian:12 or registry.example.com/team/tools:2')
  addOutput(pull)
    .addHelpText(
      'after',
      `
Examples:
  box images pull debian:12
  box images pull ghcr.io/org/tool:1 --region us-east-1

The engine of the region downloads it, with the access to registries for which it is configured. After Ctrl-C the download
ends, unless someone else waits for the same image.`,
    )
    .action((image: string, options: Output) =>
      runAction(async (session) => (await importChanges()).pullImage(session, image, options)),
    )
}

function addRm(images: Command, runAction: RunAction): void {
  const rm = images
    .command('rm')
    .aliases(['delete', 'remove'])
    .summary('remove images')
    .description(
      'Removes images, which frees their disk space. An image that a box or a snapshot has cannot be removed.',
    )
    .argument('<image...>', 'as `box images` lists them')
  addOutput(rm)
    .addHelpText(
      'after',
      '\nExamples:\n  box images rm python:3.13\n  box images -q --filter image=python | xargs -r box images rm',
    )
    .action((references: string[], options: Output) =>
      runAction(async (session) => (await importChanges()).removeImages(session, references, options)),
    )
}
