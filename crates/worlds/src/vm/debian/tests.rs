use super::super::apt::unpack;
use super::*;
use std::process::Command;

const NAME: &str = "7.2.1+deb13-cloud-amd64";

/// A package with these files, made by Debian's own tool.
fn package(directory: &Path, name: &str, files: &[&str]) -> PathBuf {
    let root = directory.join(name);
    let control = format!(
        "Package: {name}\nVersion: 1\nArchitecture: amd64\nMaintainer: nobody <n@invalid>\n\
         Description: a fixture\n"
    );
    let write = |file: &str, text: &str| {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("DEBIAN/control", &control);
    files.iter().for_each(|file| write(file, file));
    let built = Command::new("dpkg-deb").args(["--build", "-Znone"]).arg(&root).output();
    let built = built.expect("dpkg-deb, which every Debian has");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    directory.join(format!("{name}.deb"))
}

/// What is found in packages with these files, by their paths in the packages.
fn found_in(packages: &[&[&str]]) -> Result<(String, Option<String>), Error> {
    let work = tempfile::tempdir().unwrap();
    let unpacked = work.path().join("unpacked");
    for (number, files) in packages.iter().enumerate() {
        let file = package(work.path(), &format!("part{number}"), files);
        unpack(&file, &unpacked, INSTEAD)?;
    }
    let text = |path: &PathBuf| fs::read_to_string(path).unwrap();
    found(&unpacked, NAME).map(|found| (text(&found.image), found.config.as_ref().map(text)))
}

#[test]
fn every_packaging_form_gives_image_and_configuration() {
    let (image, config) =
        ("boot/vmlinuz-7.2.1+deb13-cloud-amd64", "boot/config-7.2.1+deb13-cloud-amd64");
    let (newer_image, newer_config) = (
        "usr/lib/modules/7.2.1+deb13-cloud-amd64/vmlinuz",
        "usr/lib/modules/7.2.1+deb13-cloud-amd64/config",
    );
    let module = "usr/lib/modules/7.2.1+deb13-cloud-amd64/kernel/fs/some.ko";
    let decoys = ["boot/vmlinuz-7.2.1+deb13-amd64", "usr/lib/modules/6.1/config"];
    let cases: [(&[&[&str]], _, _); 5] = [
        // One package, up to 6.18.
        (&[&[image, config, module]], image, Some(config)),
        // An empty one, the image, and the configuration: 6.19 to 7.1.
        (&[&["usr/share/doc/a"], &[image], &[config, module]], image, Some(config)),
        // From 7.2 on.
        (&[&["usr/share/doc/a"], &[newer_image], &[newer_config]], newer_image, Some(newer_config)),
        // The mirror has lost the package with the configuration.
        (&[&["usr/share/doc/a"], &[image]], image, None),
        (&[&[decoys[0], decoys[1], newer_image]], newer_image, None),
    ];
    for (packages, image, config) in cases {
        let found = found_in(packages).unwrap_or_else(|error| panic!("{packages:?}: {error}"));
        assert_eq!(found, (image.to_string(), config.map(str::to_string)), "{packages:?}");
    }
    let none = found_in(&[&decoys, &[config]]).unwrap_err();
    assert_eq!(none.exit_code(), 77);
    for word in [NAME, "usr/lib/modules", "--kernel PATH"] {
        assert!(none.to_string().contains(word), "{none}");
    }
}

#[test]
fn a_release_that_is_gone_is_named_with_what_there_is() {
    let release = |name: &str| Release::read(name).unwrap();
    let there = ["6.1.0-9", "6.18.9", "6.18.15", "6.19.1", "7.0.1-rt"].map(release);
    let gone = no_such(&release("6.17"), &there);
    assert_eq!(gone.exit_code(), 77);
    for word in ["6.17", "trixie-backports", "it has 6.1, 6.18, 6.19;", "--kernel PATH"] {
        assert!(gone.to_string().contains(word), "{word} is not in {gone}");
    }
    let of_rt = no_such(&release("6.17-rt"), &there).to_string();
    assert!(of_rt.contains("kernel 6.17-rt") && of_rt.contains("it has 7.0;"), "{of_rt}");
}
