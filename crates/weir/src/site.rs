//! The parameters of a site: one file for all queries (`--site`).

use crate::exit::usage;
use crate::library;
use crate::query::Source;
use crate::term::Term;
use std::collections::BTreeSet;
use std::path::Path;
use weir_control::SiteParams;
use weir_engine::functions::Functions;
use weir_lang::{Files, Options, ParamInfo, Query, Setting};

/// Values of params that all queries of a run take which have params of these names.
#[derive(Default, Debug)]
pub(crate) struct Site {
    /// The file that they stand in.
    path: String,
    settings: Vec<Setting>,
}

impl Site {
    /// Reads a file of settings, if one is given.
    pub(crate) fn read(path: Option<&Path>, term: &Term) -> anyhow::Result<Site> {
        let Some(path) = path else { return Ok(Site::default()) };
        let shown = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|e| usage(format!("--site {shown}: {e}")))?;
        // Files in it are found from wherever the queries are.
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = whole.parent().unwrap_or(Path::new(""));
        match weir_lang::settings(&text, folder) {
            Ok(settings) => Ok(Site { path: shown, settings }),
            Err(diagnostics) => {
                let query = Query { name: &shown, text: &text };
                term.say_text(&weir_lang::render(&diagnostics, &query, term.color_err));
                Err(usage(format!("--site {shown}: it has errors")))
            }
        }
    }

    /// The values for a query with these params, without those that are given otherwise. A value
    /// for the program counts before one for all.
    pub(crate) fn values(
        &self,
        program: &str,
        params: &[ParamInfo],
        given: &[(String, String)],
        files: &dyn Files,
    ) -> anyhow::Result<Vec<(String, String)>> {
        let mut out = Vec::new();
        for param in params {
            let own = format!("{program}.{}", param.name);
            let find = |name: &str| self.settings.iter().find(|s| s.name == name);
            let taken = given.iter().any(|(name, _)| *name == param.name);
            let Some(setting) = find(&own).or_else(|| find(&param.name)).filter(|_| !taken) else {
                continue;
            };
            self.check(setting, program, param, files)?;
            out.push((param.name.clone(), setting.value.clone()));
        }
        Ok(out)
    }

    /// Refuses a value that does not have the type of the param.
    fn check(
        &self,
        setting: &Setting,
        program: &str,
        param: &ParamInfo,
        files: &dyn Files,
    ) -> anyhow::Result<()> {
        let functions = Functions::default();
        let options = Options {
            params: &[],
            program,
            signatures: functions.signatures(),
            files: Some(files),
            ..Options::default()
        };
        let Some(d) = weir_lang::param_fault(&param.name, &param.ty, &setting.value, &options)
        else {
            return Ok(());
        };
        let help = d.help.map(|help| format!("; {help}")).unwrap_or_default();
        let place = format!("{}, line {}", self.path, setting.line);
        Err(usage(format!("{place}: {}, in {program}{help}", d.message)))
    }

    /// The values, with the files that they name, for programs that are added to a run.
    pub(crate) fn for_later_programs(&self) -> anyhow::Result<SiteParams> {
        let mut params = SiteParams::default();
        for setting in &self.settings {
            params.values.push((setting.name.clone(), setting.value.clone()));
            for file in &setting.files {
                let bytes = std::fs::read(file).map_err(|e| {
                    usage(format!("{}, line {}: {file}: {e}", self.path, setting.line))
                })?;
                params.files.push((file.clone(), bytes));
            }
        }
        Ok(params)
    }

    /// Warns of names that no query has, neither of these nor of the library.
    pub(crate) fn warn_unknown(&self, sources: &[Source], term: &Term) {
        let texts = sources.iter().map(|s| (s.program.as_str(), s.text.as_str()));
        let all = texts.chain(library::LIBRARY.iter().map(|e| (e.name, e.text)));
        let mut known = BTreeSet::new();
        if !self.settings.is_empty() {
            for (program, text) in all {
                for param in weir_lang::params(text) {
                    known.insert(format!("{program}.{}", param.name));
                    known.insert(param.name);
                }
            }
        }
        for setting in self.settings.iter().filter(|s| !known.contains(&s.name)) {
            let near = weir_lang::closest(&setting.name, known.iter().map(String::as_str));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let (path, line) = (&self.path, setting.line);
            term.warning(format_args!(
                "{path}, line {line}: no query has a param called `{}`{hint}",
                setting.name
            ));
        }
    }
}
