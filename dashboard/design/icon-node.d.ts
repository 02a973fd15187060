// The files of the icons of Lucide, which have no types of their own.
declare module 'lucide/dist/esm/icons/*.mjs' {
  const icon: import('lucide').IconNode

  // biome-ignore lint/style/noDefaultExport: the files export it so
  export { icon as default }
}
