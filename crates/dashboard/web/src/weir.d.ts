/** Texts of queries, which the bundler includes. */
declare module "*.weir" {
  const text: string;
  export default text;
}
